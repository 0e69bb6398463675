"""Pages: letters as one page to print, and as a PDF by a browser of this machine."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
from collections.abc import Mapping
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "msedge")
# Seconds after which a browser is given up.
PATIENCE = 120

PAGE = """<!DOCTYPE html>
<html lang="{language}"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body {{font-family: Georgia, serif; font-size: 12pt; line-height: 1.5; max-width: 38em;
  margin: 2em auto; padding: 0 1em}}
article {{break-after: page; white-space: pre-line; margin-bottom: 4em}}
@media print {{body {{margin: 0; max-width: none}} article {{margin: 0}}}}
@page {{margin: 25mm}}
</style></head><body>{letters}</body></html>
"""

logger = logging.getLogger(__name__)


def page(letters: Mapping[str, str], title: str, language: str) -> str:
    """A page of letters by the cases, each on a sheet of its own when printed."""
    articles = (
        f'<article id="{escape(case)}">{escape(text)}</article>' for case, text in letters.items()
    )
    return PAGE.format(language=language, title=escape(title), letters="\n".join(articles))


def print_page(path: Path, to: Path) -> bool:
    """Print a page as a PDF, if there is a browser that can.

    Args:
        path: of the page.
        to: the PDF.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        logger.info("no PDF: none of %s is installed", ", ".join(BROWSERS))
        return False
    root = ["--no-sandbox"] * (getattr(os, "geteuid", lambda: 1)() == 0)
    with TemporaryDirectory() as profile:
        command = [browser, "--headless", *root, f"--user-data-dir={profile}"]
        command += ["--no-pdf-header-footer", f"--print-to-pdf={to}", path.resolve().as_uri()]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
        except (OSError, subprocess.SubprocessError) as error:
            logger.warning("no PDF: %s failed: %s", browser, error)
    return to.exists()
