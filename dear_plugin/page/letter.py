"""Letter: what the applicant is told of the chosen way, to copy or to take away."""

from __future__ import annotations

from io import StringIO

import panel as pn

from dear_plugin import _html
from dear_plugin.page.look import CSS, column, html
from dear_plugin.page.session import Session

COPY = "navigator.clipboard.writeText(source.value)"


class Letter:
    """The letter of the chosen way, with the name of the applicant."""

    def __init__(self, session: Session) -> None:
        self.session, self.text = session, html()
        self.plain = pn.widgets.TextInput(visible=False)
        copy = pn.widgets.Button(label="Copy", stylesheets=[CSS])
        copy.js_on_click(args={"source": self.plain}, code=COPY)
        self.file = pn.widgets.FileDownload(
            callback=lambda: StringIO(self.plain.value), label="Download", stylesheets=[CSS]
        )
        self.buttons = [copy, self.file]
        self.view = column(self.text, pn.Row(*self.buttons), self.plain)

    def show(self) -> None:
        """Show the letter of the chosen way."""
        letter = self.session.answer.letter
        self.plain.value, self.view.visible = letter, bool(letter)
        self.file.filename = f"letter-{self.session.choices.applicant}.txt"
        self.text.object = f'<p class="letter">{_html.cell(letter)}</p>'
