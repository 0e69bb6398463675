"""The page as people use it, in headless Chromium; skipped, saying so, where there is none."""

import re
import shutil
import time

import pytest

pytest.importorskip("panel")
sync_api = pytest.importorskip("playwright.sync_api")

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
        until(lambda: cards(page) or page.locator(".letter").count())
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


def cards(page):
    """The text of the cards that are shown."""
    found = page.locator(".card:visible h3")
    return [text for text in found.evaluate_all(TEXTS) if text]


TEXTS = "heads => heads.map(head => head.parentElement ? head.parentElement.innerText : '')"


def ways(page):
    """What each way does and what follows, without the numbers."""
    return re.findall(r"(?:Do|Expected to follow): (.*)", "\n".join(cards(page)))


def until(check):
    """Wait until a check is true."""
    end = time.monotonic() + WAIT / 1_000
    while not check():
        assert time.monotonic() < end, "the page did not change"
        time.sleep(0.05)


def settled(page, check):
    """Wait until a check of the cards is true and no work is left."""
    until(lambda: check() and not page.locator("progress:visible").count())


def tick(page, name):
    return page.get_by_role("checkbox", name=re.compile(f"^{name}: now"))


class TestOneApplicant:
    def test_the_ways_the_letter_and_the_curve_are_there(self, page):
        first = cards(page)[0]
        assert "Do: " in first and "Score" in first and "decision at 50%" in first
        assert "all checks met" in first
        assert page.locator(".letter").inner_text().startswith("To get the decision you want")
        assert page.locator("canvas").count() > 0

    def test_no_request_leaves_the_machine(self, page, address):
        assert page.asked
        assert all(url.startswith((address, "data:", "blob:")) for url in page.asked)

    def test_nothing_is_wider_than_a_phone(self, page):
        page.set_viewport_size({"width": 400, "height": 800})
        until(lambda: page.evaluate("document.documentElement.scrollWidth") <= 400)
        assert page.locator(".card:visible").first.bounding_box()["width"] > 300
        page.set_viewport_size({"width": 1280, "height": 900})

    def test_another_way_is_taken_into_the_letter_and_the_letter_is_saved(self, page):
        before = page.locator(".letter").inner_text()
        page.get_by_role("button", name="Take way 2").click()
        until(lambda: page.locator(".letter").inner_text() != before)
        letter = page.locator(".letter").inner_text()
        with page.expect_download() as saved:
            page.get_by_text("Download").click()
        assert saved.value.path().read_text(encoding="utf8") == letter

    def test_a_value_by_hand_is_told_with_what_follows(self, page, loans):
        told = page.get_by_text(re.compile("The decision is (not )?the wanted one"))
        page.get_by_label("Feature").select_option(label="Loan")
        own = f"{loans[1]['loan_amount'].iloc[0]:,.10g}"
        settled(page, page.get_by_text(re.compile(f"^Value: {own} thousand")).count)

        def _told():
            # A slider that is filled anew meanwhile loses a key.
            page.locator(".noUi-handle").last.press("ArrowLeft")
            page.wait_for_timeout(1_000)
            return told.count()

        until(_told)
        page.get_by_role("button", name="Start again").click()
        until(lambda: not told.count())

    def test_another_applicant_by_search_and_by_the_buttons(self, page, loans):
        _, rows = loans
        label, field = str(rows.index[20]), page.locator("input.bk-input").first
        field.fill("")
        field.press_sequentially(f"{label} ·")
        page.locator(".bk-menu").get_by_text(f"{label} ·").first.click()
        values = (f"{rows['savings'].iloc[at]:,.10g}" for at in (20, 21))
        shown = [page.get_by_text(f"Savings: now {value} ") for value in values]
        until(shown[0].count)
        page.get_by_role("button", name="Next").click()
        until(shown[1].count)
        assert field.input_value().startswith(f"{rows.index[21]} ·")


class TestWhatMayChange:
    def test_what_is_not_ticked_never_appears_and_only_in_the_own_session(self, opened, address):
        first, second = opened(address), opened(address)
        before = cards(second)
        assert "Savings" in ways(first)
        tick(first, "Savings").uncheck()
        settled(first, lambda: "Savings" not in ways(first))
        assert "Do: Loan" in cards(first)[0]
        tick(first, "Term").uncheck()
        settled(first, lambda: "Term" not in ways(first))
        assert cards(second) == before
        assert tick(second, "Savings").is_checked()

    def test_a_reach_that_is_dragged_holds_in_the_new_cards(self, opened, address):
        page = opened(address)
        handle = page.locator(".noUi-handle-upper").nth(2)
        box = handle.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x - 190, y + 5, steps=6)
        page.mouse.up()
        most = float(handle.get_attribute("aria-valuenow"))
        assert most < 36

        def _held():
            found = re.findall(r"Savings\n[\d.]+ → ([\d.]+)", "\n".join(cards(page)))
            return all(float(value) <= most for value in found)

        settled(page, _held)

    def test_the_keyboard_alone_is_enough(self, opened, address):
        """Tab leads to a tick, which the space bar changes, and to a button."""
        page = opened(address)

        def _to(name):
            for _ in range(40):
                page.keyboard.press("Tab")
                if name in page.evaluate(FOCUSED):
                    return
            raise AssertionError(f"no way to {name} by the tab key")

        _to("Income")
        page.keyboard.press("Space")
        settled(page, lambda: "Income" not in ways(page))
        _to("Take way 2")
        page.keyboard.press("Enter")
        until(lambda: page.get_by_role("button", name="Take way 1").count())


FOCUSED = """() => {
  let element = document.activeElement;
  while (element.shadowRoot && element.shadowRoot.activeElement) {
    element = element.shadowRoot.activeElement;
  }
  return (element.parentElement || element).innerText + element.innerText;
}"""


def test_forty_features_and_two_thousand_rows_stay_usable(opened, wide, serve):
    dear, rows = wide
    page = opened(serve(dear.explore(rows)))
    assert page.get_by_role("checkbox").count() == 40
    name = ways(page)[0]
    start = time.monotonic()
    tick(page, name).uncheck()
    settled(page, lambda: name not in ways(page))
    assert time.monotonic() - start < 8
