"""Take the screenshots of the page, `docs/images/page*.png`: python docs/screenshots.py

It needs the extra `page`, playwright, Chromium, and for Adult the real data.
"""

import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from dear_plugin import Constraints
from dear_plugin.demo.explore import Explore, subject

IMAGES = Path(__file__).with_name("images")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PHONE, DESK = {"width": 400, "height": 900}, {"width": 1280, "height": 900}
# Of a page that is longer, all of it is taken.
SHORT = {"width": 1280, "height": 300}
COLOURS = 96


def main() -> None:
    """Serve the pages one by one, and save what a browser shows of them."""
    loan, rows, within = subject(Explore("loan"))
    adult = subject(Explore("adult"))
    with sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        with served(loan.explore(rows, within=within)) as address:
            shot(browser, address, "page", tries="Loan")
            shot(browser, address, "page-phone", viewport=PHONE)
            shot(browser, address, "page-all", tab="All applicants", viewport=SHORT)
        with served(loan.explore(rows, within=Constraints(act_on=["education"]))) as address:
            shot(browser, address, "page-none")
        with served(adult[0].explore(adult[1], within=adult[2])) as address:
            shot(browser, address, "page-dark", color_scheme="dark")


@contextmanager
def served(page: Any) -> Iterator[str]:
    """The address of a page, which is served in a thread."""
    with socket.socket() as place:
        place.bind(("localhost", 0))
        port = place.getsockname()[1]
    thread = page.show(port, open_browser=False, threaded=True)
    yield f"http://localhost:{port}"
    thread.stop()


def shot(browser: Any, address: str, name: str, *, tries="", tab="", **how: Any) -> None:
    """Save a screenshot; `tries` is a feature that is lowered by hand, `tab` another tab."""
    page = browser.new_page(**{"viewport": DESK, **how})
    page.goto(address)
    page.get_by_text("Ways to the wanted decision").wait_for()
    page.locator(".letter").wait_for(state="attached")
    page.wait_for_timeout(2_000)
    if tries:
        page.get_by_label("Feature", exact=True).select_option(label=tries)
        page.wait_for_timeout(2_000)
        for _ in range(4):
            page.get_by_label(f"Value of {tries}").press("ArrowDown")
            page.wait_for_timeout(1_000)
    if tab:
        page.get_by_label(tab).check()
        page.locator("#all .card").first.wait_for(timeout=120_000)
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(2_000)
    image = Image.open(BytesIO(page.screenshot(full_page=True))).convert("RGB")
    image.quantize(COLOURS).save(IMAGES / f"{name}.png", optimize=True)
    page.close()


if __name__ == "__main__":
    main()
