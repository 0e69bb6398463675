"""The page as people use it, in headless Chromium; skipped, saying so, where there is none."""

import json
import re
import shutil
import time

import pytest

pytest.importorskip("panel")

from dear_plugin import Constraints
from dear_plugin.page.session import Session
from tests.page.conftest import loan_score

sync_api = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")

pytestmark = pytest.mark.ci

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
QUIET = ("background-networking", "component-update", "sync")
FLAGS = ["--no-sandbox", "--disable-gpu", *(f"--disable-{each}" for each in QUIET)]
WAIT = 30_000


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def opened(browser):
    """A function that opens an address in a context of its own."""
    contexts = []

    def _open(address, **how):
        contexts.append(browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **how}))
        page = contexts[-1].new_page()
        page.set_default_timeout(WAIT)
        page.asked = []
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(address)
        page.get_by_text("Ways to the wanted decision").wait_for()
        until(lambda: status(page) and page.locator(".letter").count())
        return page

    yield _open
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def address(loans, serve):
    dear, rows = loans
    return serve(dear.explore(rows))


@pytest.fixture(scope="module")
def page(opened, address):
    """One page for all tests that leave it as it was."""
    return opened(address)


@pytest.fixture(scope="module")
def weak(loans, serve):
    """The page of an applicant with a way that is advice, and one that is not."""
    dear, rows = loans
    acted = ["income", "savings", "loan_amount"]
    for at in range(len(rows)):
        visit = Session(dear, rows.iloc[[at]], None, Constraints(act_on=acted), "en")
        found = visit.answered(visit.answer.choices).found
        if len({not way.why for way in found}) == 2:
            return serve(dear.explore(rows.iloc[[at]], within=Constraints(act_on=acted)))
    raise AssertionError("all ways of all applicants are alike")


def cards(page):
    """The text of the cards that are shown."""
    found = page.locator(".card:visible h3")
    return [text for text in found.evaluate_all(TEXTS) if text]


TEXTS = "heads => heads.map(head => head.parentElement ? head.parentElement.innerText : '')"


def ways(page):
    """What each way does and what follows, without the numbers."""
    return page.locator(".ways .what").all_text_contents()


def acted(page):
    """What each way does."""
    return page.locator(".ways .direct .what").all_text_contents()


def savings(page):
    """The new savings of each way."""
    return re.findall(r"Savings\n[\d.]+ → ([\d.]+)", "\n".join(cards(page)))


def until(check):
    """Wait until a check is true."""
    end = time.monotonic() + WAIT / 1_000
    while not check():
        assert time.monotonic() < end, "the page did not change"
        time.sleep(0.05)


def status(page):
    return page.get_by_role("status").inner_text()


def settled(page, check):
    """Wait until a check of the cards is true and no work is left."""
    until(lambda: not status(page).startswith("Computing") and check())


def state(page, name, value):
    """Choose what may become of a feature, unfolded where it is folded."""
    field = page.get_by_label(re.compile(f"^{name}: now"))
    if field.is_hidden():
        page.locator("#rest summary").click()
    field.select_option(label=value)


# Notes, whenever a frame is drawn, the cards, the letter, and whether it can be copied.
WATCH = """() => {
  const all = (root, name) => [...root.querySelectorAll(name), ...[...root.querySelectorAll('*')]
    .filter(each => each.shadowRoot).flatMap(each => all(each.shadowRoot, name))];
  window.seen = [];
  const look = () => {
    const copy = all(document, 'button').find(each => each.innerText.trim() == 'Copy');
    const heads = all(document, 'h3').filter(each => each.checkVisibility());
    const letter = all(document, '.letter')[0];
    if (copy && letter) window.seen.push([heads.map(each => each.parentElement.innerText).join(),
      letter.innerText, !copy.disabled, heads[0] ? heads[0].getBoundingClientRect().top : 0]);
    requestAnimationFrame(look);
  };
  look();
}"""


class TestOneQuestionOneAnswer:
    def test_no_letter_of_another_question_can_be_copied_and_nothing_jumps(self, opened, address):
        page = opened(address)
        page.evaluate(WATCH)
        state(page, "Savings", "it stays")
        settled(page, lambda: "Savings" not in ways(page))
        page.wait_for_timeout(500)
        seen = page.evaluate("window.seen")
        assert any(not enabled for _, _, enabled, _ in seen)
        assert len({(cards, letter) for cards, letter, enabled, _ in seen if enabled}) == 2
        assert len({top for *_, top in seen}) == 1

    def test_the_ways_the_letter_and_the_curve_are_there(self, page, loans):
        first = cards(page)[0]
        assert "Do\n" in first and "Score" in first and "decision at 50%" in first
        assert "can be advised" in first
        letter = page.locator(".letter").inner_text()
        assert letter.startswith(f"Case {loans[1].index[0]}")
        assert "To get the decision you want" in letter
        assert page.get_by_role("img", name="Score by").count() == 1
        titles = page.locator("svg .title").all_text_contents()
        assert titles == ["Savings (thousand euros)", "Score"]
        assert re.fullmatch(r"\d ways?", status(page))

    def test_no_request_leaves_the_machine(self, page, address):
        assert page.asked
        assert all(url.startswith((address, "data:", "blob:")) for url in page.asked)

    def test_the_letter_is_saved_under_the_name_of_the_case(self, page, loans):
        letter = page.locator(".letter").inner_text()
        with page.expect_download() as saved:
            page.get_by_text("Download").click()
        assert saved.value.suggested_filename == f"letter-{loans[1].index[0]}.txt"
        assert saved.value.path().read_text(encoding="utf8") == letter

    def test_what_is_copied_is_the_letter_and_the_page_says_so(self, opened, address):
        page = opened(address, permissions=["clipboard-read", "clipboard-write"])
        page.get_by_role("button", name="Copy").click()
        until(lambda: status(page) == "The letter is copied")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == page.locator(".letter").inner_text()

    def test_a_value_by_hand_is_shown_with_what_follows(self, page):
        told = page.get_by_text(re.compile("The decision is (not )?the wanted one"))
        page.get_by_label("Feature", exact=True).select_option(label="Loan")
        page.get_by_label("Value of Loan").press("ArrowDown")
        until(told.count)
        page.get_by_role("button", name="Start again").click()
        until(lambda: not told.count())


class TestWhoIsShown:
    def test_by_search_and_by_the_buttons(self, opened, address, loans):
        page, (_, rows) = opened(address), loans
        field = page.get_by_label("Search for an applicant")
        assert field.input_value() == ""
        field.press_sequentially(f"{rows.index[20]} ·")
        page.get_by_role("button", name=re.compile(f"^{rows.index[20]} ·")).click()
        until(page.get_by_role("heading", name=f"Applicant {rows.index[20]}").count)
        until(lambda: field.input_value() == "")
        page.get_by_role("button", name="Next").click()
        until(page.get_by_role("heading", name=f"Applicant {rows.index[21]}").count)
        until(page.get_by_text(f"Savings: now {rows['savings'].iloc[21]:,.10g} ").count)

    def test_nobody_is_said(self, page, loans):
        field = page.get_by_label("Search for an applicant")
        field.press_sequentially("nobody")
        until(page.get_by_role("alert").get_by_text("No applicant has 'nobody'").count)
        assert page.get_by_role("heading", name=f"Applicant {loans[1].index[0]}").count()
        field.blur()
        field.click()
        field.press_sequentially("2")
        assert field.input_value() == "2"
        until(lambda: not page.get_by_text("No applicant has").count())
        field.fill("")

    def test_enter_takes_the_first_who_is_found_and_the_others_are_counted(
        self, opened, address, loans
    ):
        page, (_, rows) = opened(address), loans
        field = page.get_by_label("Search for an applicant")
        field.fill("education")
        until(page.get_by_text(f"and {len(rows) - 8} more").count)
        field.fill(f"{rows.index[7]} ·")
        field.press("Enter")
        until(page.get_by_role("heading", name=f"Applicant {rows.index[7]}").count)


class TestOneVerdict:
    def test_clear_ways_are_first_and_a_weak_one_says_why_and_has_no_letter(self, opened, weak):
        page = opened(weak)
        heads = cards(page)
        verdicts = ["\nweak\n" in text for text in heads]
        assert verdicts == sorted(verdicts)
        assert {*verdicts} == {True, False}
        for at, is_weak in enumerate(verdicts):
            card = page.locator(".ways .card").nth(at)
            assert card.get_by_role("button").is_disabled() == is_weak
            assert ("can be advised" in heads[at]) != is_weak
            why = card.get_by_role("button").get_attribute("aria-describedby")
            assert bool(why) == is_weak
            if is_weak:
                reason = card.locator(f"#{why}").inner_text()
                assert reason.startswith("Not for a letter. ")
                assert page.locator("main").inner_text().count(reason[18:]) == 1
        assert "To get the decision you want" in page.locator(".letter").inner_text()

    def test_no_way_is_said_in_plain_words(self, opened, loans, serve):
        dear, rows = loans
        page = opened(serve(dear.explore(rows, within=Constraints(act_on=[]))))
        assert page.get_by_text("No way was found with what may change").count() == 1
        assert "admissible" not in page.locator("main").inner_text()
        assert status(page) == "no ways"
        reason = "Nothing that you could change here is enough"
        assert page.locator("main").inner_text().count(reason) == 1


class TestWhatMayChange:
    def test_what_may_follow_is_not_acted_on(self, opened, address):
        page = opened(address)
        state(page, "Savings", "it may follow")
        settled(page, lambda: "Savings" not in acted(page))
        found = page.get_by_label(re.compile("^Savings: now")).locator("option")
        assert found.all_inner_texts() == ["I may act on it", "it may follow", "it stays"]

    def test_what_stays_never_appears_and_only_in_the_own_session(self, opened, address):
        first, second = opened(address), opened(address)
        before = cards(second)
        assert "Savings" in ways(first)
        for name in ("Savings", "Term"):
            state(first, name, "it stays")
            settled(first, lambda name=name: name not in ways(first))
        assert cards(second) == before
        assert second.get_by_label(re.compile("^Savings: now")).input_value() == "I may act on it"

    def test_a_reach_holds_in_the_new_cards(self, opened, address, loans):
        page = opened(address)
        most = page.get_by_label("Savings, at most")
        for name in ("Savings", "Income"):  # which may only rise
            field = page.get_by_label(f"{name}, at least")
            assert float(field.input_value()) == loans[1][name.lower()].iloc[0]
        most.fill("34")
        most.press("Enter")

        settled(page, lambda: all(float(new) <= 34 for new in savings(page)))
        assert most.input_value() == "34"

    def test_a_saved_case_opens_again(self, opened, address):
        page, other = opened(address), opened(address)
        state(page, "Savings", "it stays")
        settled(page, lambda: "Savings" not in ways(page))
        with page.expect_download() as saved:
            page.get_by_text("Save this case").click()
        other.get_by_label("Open a saved case").set_input_files(saved.value.path())
        settled(other, lambda: cards(other) == cards(page))

    def test_a_case_that_was_changed_by_hand_is_a_clear_error(self, opened, address, tmp_path):
        page = opened(address)
        before = cards(page)
        with page.expect_download() as saved:
            page.get_by_text("Save this case").click()
        case = json.loads(saved.value.path().read_text(encoding="utf8"))
        case["reach"]["savings"] = "forty"
        (tmp_path / "case.json").write_text(json.dumps(case))
        page.get_by_label("Open a saved case").set_input_files(tmp_path / "case.json")
        words = r"\[least, greatest\], each a number from .*, or null for an open end, got 'forty'"
        until(page.get_by_role("alert").get_by_text(re.compile(words)).count)
        assert cards(page) == before
        page.get_by_label("Open a saved case").set_input_files(saved.value.path())
        settled(page, lambda: not page.get_by_role("alert").count())

    def test_what_is_typed_while_an_answer_is_computed_stays(self, opened, address):
        page = opened(address)
        state(page, "Term", "it stays")
        most = page.get_by_label("Savings, at most")
        most.fill("40")
        settled(page, lambda: "Term" not in ways(page))
        assert most.input_value() == "40"
        most.press("Enter")
        settled(page, lambda: all(float(new) <= 40 for new in savings(page)))

    def test_the_keyboard_alone_is_enough(self, opened, address):
        """Tab leads to a list, which the arrows change, and to the letter."""
        page = opened(address)

        def _to(name):
            for _ in range(40):
                page.keyboard.press("Tab")
                if name in page.evaluate(FOCUSED):
                    return
            raise AssertionError(f"no way to {name} by the tab key")

        _to("Savings: now")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        settled(page, lambda: "Savings" not in ways(page))
        _to("Copy")


FOCUSED = """() => {
  let element = document.activeElement;
  while (element.shadowRoot && element.shadowRoot.activeElement) {
    element = element.shadowRoot.activeElement;
  }
  return [element, ...(element.labels || [])].map(each => each.innerText).join(" ");
}"""


# A part of each view.
VIEWS = {"One applicant": ".letter:visible", "All applicants": ".card:visible"}


class TestEverybodyCanUseIt:
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_axe_finds_nothing(self, opened, address, scheme):
        page = opened(address, color_scheme=scheme)
        for view, part in VIEWS.items():
            page.get_by_label(view).check()
            settled(page, page.locator(part).count)
            page.wait_for_timeout(1_000)
            found = axe.Axe().run(page)
            assert not found.violations_count, found.generate_snapshot()

    @pytest.mark.parametrize("view", VIEWS)
    def test_nothing_is_wider_than_a_phone(self, opened, address, view):
        page = opened(address, viewport={"width": 400, "height": 800})
        page.get_by_label(view).check()
        settled(page, page.locator(VIEWS[view]).count)
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        assert page.locator(".card:visible").first.bounding_box()["y"] < 600
        assert page.locator(".card:visible").first.bounding_box()["width"] > 300

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_lists_and_axes_are_as_dark_or_light_as_the_text(self, opened, address, scheme):
        page = opened(address, color_scheme=scheme)
        ink = {"light": "rgb(29, 35, 41)", "dark": "rgb(233, 236, 239)"}[scheme]
        for name, of in (("select", "color"), ("#next", "color"), ("svg text", "fill")):
            style = page.locator(name).first.evaluate("each => getComputedStyle(each)." + of)
            assert style == ink

    def test_a_kind_of_advice_is_excluded_by_a_tick(self, opened, address):
        page = opened(address)
        page.get_by_label("All applicants").check()
        savings = page.get_by_role("checkbox", name="Increase the savings")
        settled(page, savings.count)
        assert page.get_by_text(re.compile(r"^\d+ of 60 applicants \(\d+%\), .* euros")).count()
        savings.uncheck()
        settled(page, page.get_by_text("No applicant gets this advice.").count)
        page.get_by_label("One applicant").check()
        settled(page, lambda: cards(page) and "Savings" not in acted(page))


def test_forty_features_and_two_thousand_rows_stay_usable(opened, wide, serve):
    dear, rows = wide
    page = opened(serve(dear.explore(rows)))
    assert page.get_by_label(re.compile(": now")).count() == 40
    name = ways(page)[0]
    state(page, name, "it stays")
    settled(page, lambda: name not in ways(page))


def applicant(page):
    """Who the page says is shown."""
    return page.locator("#who h2").inner_text()


class TestACasesChoicesAreTheCases:
    def test_another_applicant_starts_anew_and_the_choices_are_there_again(self, opened, address):
        page = opened(address)
        state(page, "Savings", "it stays")
        settled(page, lambda: "Savings" not in ways(page))
        own, chosen = applicant(page), page.get_by_label(re.compile("^Savings: now"))
        page.get_by_role("button", name="Next").click()
        settled(page, lambda: applicant(page) != own)
        assert chosen.input_value() == "I may act on it"
        page.get_by_role("button", name="Previous").click()
        settled(page, lambda: applicant(page) == own)
        assert chosen.input_value() == "it stays"

    def test_all_applicants_have_choices_of_their_own_and_say_so(self, opened, address):
        page = opened(address)
        own, chosen = applicant(page), page.get_by_label(re.compile("^Savings"), exact=True).first
        assert page.get_by_text("These choices are for this applicant alone.").count()
        state(page, "Savings", "it stays")
        settled(page, lambda: "Savings" not in ways(page))
        page.get_by_label("All applicants").check()
        kind = page.get_by_role("checkbox", name="Increase the savings")
        settled(page, kind.count)
        assert applicant(page) == "All applicants"
        assert page.get_by_text("These choices are for all applicants.").count()
        whole = page.get_by_label("Savings", exact=True)
        assert whole.input_value() == "I may act on it"
        whole.select_option(label="it stays")
        settled(page, lambda: not kind.count())
        page.get_by_label("One applicant").check()
        settled(page, lambda: applicant(page) == own)
        assert chosen.input_value() == "it stays"
        page.get_by_role("button", name="Next").click()
        settled(page, lambda: applicant(page) != own)
        assert chosen.input_value() == "I may act on it"
        assert "Savings" in ways(page)


class TestWhileItComputes:
    @pytest.fixture
    def slow(self, loans, serve):
        """A page whose model waits before each answer, and how often it was asked."""
        (dear, rows), calls = loans, []

        def _score(frame):
            calls.append(len(frame))
            time.sleep(0.4 * (len(calls) > 60))
            return loan_score(frame)

        return serve(dear.with_model(_score).explore(rows)), calls

    def test_the_new_name_and_seconds_are_shown_and_stop_ends_the_work(self, opened, slow, loans):
        address, calls = slow
        page, rows = opened(address), loans[1]
        before, n = cards(page), status(page)
        calls.extend([0] * 60)
        page.get_by_role("button", name="Next").click()
        assert applicant(page) == f"Applicant {rows.index[1]}"
        assert status(page) == f"Computing: applicant {rows.index[1]}"
        assert page.locator(".ways").is_hidden()
        assert page.locator("#may").is_hidden()
        until(lambda: page.locator("#seconds").inner_text() == "2 s")
        page.get_by_role("button", name="Stop").click()
        until(lambda: status(page) == n)
        assert applicant(page) == f"Applicant {rows.index[0]}"
        assert cards(page) == before
        assert page.get_by_role("button", name="Stop").is_hidden()
        time.sleep(1.0)
        asked = len(calls)
        time.sleep(1.5)
        assert len(calls) == asked

    def test_what_was_chosen_is_undone_by_stop(self, opened, slow):
        address, calls = slow
        page = opened(address)
        calls.extend([0] * 60)
        state(page, "Savings", "it stays")
        page.get_by_role("button", name="Stop").click()
        until(lambda: not status(page).startswith("Computing"))
        assert page.get_by_label(re.compile("^Savings: now")).input_value() == "I may act on it"
        assert "Savings" in ways(page)

    def test_what_cannot_be_clicked_says_why(self, opened, slow):
        address, calls = slow
        page = opened(address)
        calls.extend([0] * 60)
        state(page, "Savings", "it stays")
        copy = page.get_by_role("button", name="Copy")
        assert copy.is_disabled()
        assert copy.get_attribute("title") == "Wait for the answer, or stop"


class TestNumbersOutsideTheirLimits:
    @pytest.mark.parametrize("name", ["Savings, at least", "Value of Savings"])
    @pytest.mark.parametrize("typed", ["-5", "900"])
    def test_are_refused_in_words_and_stay_as_typed(self, opened, address, name, typed):
        page = opened(address)
        before, field = cards(page), page.get_by_label(name)
        field.fill(typed)
        field.press("Tab")
        (said,) = page.get_by_role("alert").all_inner_texts()
        numbers = r"A number from [\d.]+ to [\d.]+ thousand euros is possible here."
        assert re.fullmatch(f"Not taken: {typed}. {numbers}", said)
        assert (field.input_value(), field.get_attribute("aria-invalid")) == (typed, "true")
        assert not status(page).startswith("Computing")
        assert cards(page) == before

    def test_at_least_is_no_more_than_at_most(self, opened, address):
        page = opened(address)
        page.get_by_label("Savings, at most").fill("34")
        page.get_by_label("Savings, at most").press("Enter")
        settled(page, lambda: all(float(new) <= 34 for new in savings(page)))
        page.get_by_label("Savings, at least").fill("35")
        page.get_by_label("Savings, at least").press("Enter")
        until(page.get_by_text(re.compile("Not taken: 35. A number from .* to 34 ")).count)
        page.get_by_label("Savings, at least").fill("33")
        page.get_by_label("Savings, at least").press("Enter")
        settled(page, lambda: not page.get_by_text("Not taken").count())


@pytest.fixture(scope="module")
def staff(people, serve):
    """The page of people with names, gaps, and much that follows."""
    dear, rows = people
    return serve(dear.explore(rows))


class TestWhatIsProtected:
    def test_is_hidden_by_a_switch_and_in_print(self, opened, staff):
        page = opened(staff)
        race = page.get_by_text(re.compile("^( · )?Race "))
        name = page.locator("#who h2 .protected")
        assert race.is_visible() and name.is_visible()
        page.emulate_media(media="print")
        assert race.is_hidden() and name.is_hidden()
        assert page.locator(".letter .protected").first.is_hidden()
        page.emulate_media(media="screen")
        page.get_by_label("on this screen").check()
        assert race.is_hidden() and name.is_hidden()
        assert page.locator("#who").get_by_text("1 of").is_visible()
        page.get_by_label("on this screen").uncheck()
        page.get_by_label("in print").uncheck()
        page.emulate_media(media="print")
        assert race.is_visible() and name.is_visible()

    def test_is_not_searched_for(self, page):
        field = page.get_by_label("Search for an applicant")
        field.fill("gender")
        until(page.get_by_text("No applicant has 'gender'").count)
        field.fill("")


class TestHarmIsNotOffered:
    def test_neither_to_one_nor_to_all(self, opened, staff, people):
        page, (_, rows) = opened(staff), people
        assert "Hours" in ways(page)
        assert not {"Education", "Gaps"} & {*acted(page)}
        least = page.get_by_label("Education, at least")
        assert float(least.input_value()) == rows["education"].iloc[0]
        assert page.get_by_text("Less than now is not offered.").count() == 1
        assert page.get_by_text("More than now is not offered.").count() == 1
        assert page.get_by_role("group", name="Gaps").get_by_role("checkbox").count() == 1
        page.get_by_label("All applicants").check()
        settled(page, page.get_by_role("checkbox", name="Increase the hours").count)
        told = " ".join(page.locator("#all .tick").all_inner_texts())
        assert not re.search("Reduce the education|gaps: no", told)


class TestWhatFollows:
    def test_is_grouped_and_folded_and_stays_unfolded(self, opened, staff):
        page = opened(staff)
        card = page.locator(".ways .card").first
        assert card.get_by_text("Expected to follow", exact=True).count() == 1
        more = card.get_by_text(re.compile(r"^\d more$"))
        lines = card.locator(".indirect .what")
        assert lines.count() == 2 + int(more.inner_text().split()[0]) > 4
        assert [each.is_visible() for each in lines.all()].count(True) == 2
        page.emulate_media(media="print")
        assert all(each.is_visible() for each in lines.all())
        page.emulate_media(media="screen")
        assert [each.is_visible() for each in lines.all()].count(True) == 2
        more.click()
        assert all(each.is_visible() for each in lines.all())
        rest = page.get_by_text(re.compile(r"^\d that may only follow, or stay$"))
        assert page.get_by_label(re.compile("^Rent: now")).is_hidden()
        rest.click()
        state(page, "Rent", "it stays")
        settled(page, lambda: "Rent" not in ways(page))
        assert page.get_by_label(re.compile("^Rent: now")).is_visible()


class TestPlots:
    def test_no_label_lies_on_its_side(self, opened, staff):
        page = opened(staff)
        for name in ("Education", "Gaps"):
            page.get_by_label("Feature", exact=True).select_option(label=name)
            settled(page, page.get_by_role("img", name=re.compile(f"by {name}")).count)
            turned = "all => all.filter(each => each.outerHTML.includes('rotate')).length"
            assert page.locator("figure *").evaluate_all(turned) == 0
        assert page.locator(".level").all_inner_texts() == ["no (now)"]
