"""Letter: what the applicant is told of the chosen way, to copy or to take away."""

from __future__ import annotations

from io import StringIO

import panel as pn

from dear_plugin import _html
from dear_plugin.page.look import CSS, column, html
from dear_plugin.page.session import Session

COPY = "navigator.clipboard.writeText(source.value)"


class Letter:
    """The letter of the chosen way."""

    def __init__(self, session: Session) -> None:
        self.session, self.text = session, html()
        self.plain = pn.widgets.TextInput(visible=False)
        copy = pn.widgets.Button(label="Copy", stylesheets=[CSS])
        copy.js_on_click(args={"source": self.plain}, code=COPY)
        named = {"filename": "letter.txt", "label": "Download", "stylesheets": [CSS]}
        file = pn.widgets.FileDownload(callback=lambda: StringIO(self.plain.value), **named)
        self.view = column(self.text, pn.Row(copy, file), self.plain)

    def show(self) -> None:
        """Show the letter of the chosen way."""
        ways, template = self.session.ways, self.session.template
        letter = ways[self.session.chosen].letter(template=template).iloc[0] if ways else ""
        self.plain.value, self.view.visible = letter, bool(letter)
        self.text.object = f'<p class="letter">{_html.cell(letter)}</p>'
