"""Case: what is chosen as a file, to open again."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from typing import Any

import panel as pn

from dear_plugin.errors import DearError
from dear_plugin.page.look import CSS, STYLE, column, error, html, watched
from dear_plugin.page.session import Choices, Session


class Case:
    """A button that saves a case, and an input of a file that opens one."""

    def __init__(self, session: Session, opened: Callable[[Choices], Any]) -> None:
        self.session, self.opened, self.wrong = session, opened, html()
        save = pn.widgets.FileDownload(
            callback=self._saved, filename="case.json", label="Save this case", stylesheets=[CSS]
        )
        self.file = pn.widgets.FileInput(label="Open a saved case", accept=".json", **STYLE)
        watched(self.file, self._open)
        self.buttons = [save]
        self.view = column(html("<h2>This case</h2>"), save, self.file, self.wrong)

    def _saved(self) -> StringIO:
        return StringIO(self.session.choices.to_json())

    def _open(self, content: bytes | None) -> None:
        """Show what is saved in a file."""
        self.wrong.object = ""
        try:
            choices = self.session.opened((content or b"").decode())
        except (DearError, UnicodeDecodeError) as problem:
            self.wrong.object = error(str(problem))
            return
        self.opened(choices)
