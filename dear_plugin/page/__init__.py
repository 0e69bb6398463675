"""The page to look for recourse with an applicant; only this package uses Panel."""

from __future__ import annotations

from dear_plugin.errors import ExtraError

try:
    import panel as _  # noqa: F401
except ModuleNotFoundError as error:
    raise ExtraError('the page needs Panel: pip install "dear-plugin[page]"') from error

from dear_plugin.page.explorer import Explorer

__all__ = ["Explorer"]
