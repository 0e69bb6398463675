"""What names of columns say of them: attributes, time, past events, marks."""

from __future__ import annotations

import re
from functools import cache

# Words, or parts of words, of names in lower case with "_" around each word, and what they say.
SENSITIVE = "have names of attributes that cannot be changed"
NAMES = {
    SENSITIVE: r"_(age|sex|gender|gndr|race|racial|ethn?(ic(ity)?)?|black|blk|non_?white|caucasian"
    r"|asian|african|hisp(an(ics?)?)?|latin[oax]s?|nationality|natl|national_origin|citizen(ship)?"
    r"|foreign(er)?|immigrant|native|birth_?place|born|relig(ion|ious)?|muslim|christian|catholic"
    r"|jewish|hindu|males?|fem(ales?)?|wom[ae]n|marital(status)?|mar_?stat(us)?|(un)?married|marr"
    r"|divorced|widow(ed)?|relationship|elderly|pregnant|disab(led|ility)"
    r"|(first|last|full|middle|maiden|sur|family|f|l)_?names?)_"
    r"|^_(m[ae]n|white|wht|old|young|single|names?)_$",
    "seem to count time, and no action makes time pass": r"since|_(age|tenure|seniority|elapsed)_"
    r"|_(birthday|dob)_|_(years?|months?|days?|yrs)_(at|in|with|on)_",
    "have names of past events, which no action undoes": r"_(delinq\w*?|late|arrears|overdue"
    r"|past_due|default(s|ed)?|bankrupt\w*?|derog\w*?|foreclosure|priors|convictions|arrests|lawsuits"
    r"|charged?_?offs?|missed_payments?|pub_rec|public_records?)_",
    "have names of marks that the decision maker gives, and a person cannot set": r"_(sub)?(grade"
    r"|score|rating|decision|limit|apr|guidelines?|int(erest)?_rate|risk_class)_",
}
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def says(name: str, reason: str) -> bool:
    """Whether a name, in camelCase, snake_case and the like, has words of a reason of `NAMES`."""
    return bool(re.search(NAMES[reason], words(name)))


def words(name: str) -> str:
    """The words of a name in lower case, with "_" around each."""
    return "_".join(["", *WORD.findall(name), ""]).lower()


@cache
def may_be_said(name: str, *, immutable: bool) -> bool:
    """Whether texts may say to an applicant that a feature counts: no personal attribute.

    Of what is immutable, those that have the name of a past event or of a mark.
    """
    said = [*NAMES][-2:] if immutable else [""]
    return not says(name, SENSITIVE) and any(not why or says(name, why) for why in said)
