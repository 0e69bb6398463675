"""The laws that hold for every recourse method, to test a method of your own.

In your test module::

    @pytest.fixture(scope="module")
    def subject():
        return Subject.of(MyMethod(model, schema).fit(frame), refused_and_accepted_rows)


    @pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
    def test_the_laws_hold(law, subject):
        law(subject)
"""

from __future__ import annotations

from dear_plugin.testing.laws import LAWS, obeys
from dear_plugin.testing.subject import Accepts, Subject

__all__ = ["LAWS", "Accepts", "Subject", "obeys"]
