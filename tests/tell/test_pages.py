"""A page of letters, and its PDF."""

import shutil

import pytest

from dear_plugin.tell.run import BROWSERS, page, print_page


def test_each_letter_is_an_article_with_its_case_as_text():
    text = page({"7 <b>": "Dear applicant,\nwait & see."}, "Letters", "en")
    assert '<article id="7 &lt;b&gt;">Dear applicant,\nwait &amp; see.</article>' in text
    assert 'lang="en"' in text


@pytest.mark.ci
@pytest.mark.skipif(not any(map(shutil.which, BROWSERS)), reason="needs a browser")
def test_a_browser_prints_a_sheet_for_each_letter(tmp_path):
    path, to = tmp_path / "letters.html", tmp_path / "letters.pdf"
    path.write_text(page({"1": "One.", "2": "Two."}, "Letters", "en"), encoding="utf8")
    assert print_page(path, to)
    content = to.read_bytes()
    assert content.startswith(b"%PDF")
    assert content.count(b"/Type /Page\n") + content.count(b"/Type /Page ") == 2


def test_without_a_browser_there_is_no_pdf(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not print_page(tmp_path / "letters.html", tmp_path / "letters.pdf")
