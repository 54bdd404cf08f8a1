"""How a source says no in the engine's place: an upstream refuses, an answer is an error, a unit cannot be read.

Promises: the text is in words for an operator. They are part of the contract, which gives them on. Never: anything is
decided here.
"""

from __future__ import annotations

from datetime import timedelta


class DefiniteRefusal(Exception):
    """An upstream says no for a reason that asking again cannot mend: credentials, plan, schema.

    `may_pass`: this upstream says so under load too; it is asked again, slowly, before it is believed.
    """

    def __init__(self, text: str, *, may_pass: bool = False) -> None:
        super().__init__(text)
        self.may_pass = may_pass


class AnswerError(Exception):
    """The answer to one request is an error; the text says which, in words for an operator.

    `may_pass`: it is worth asking again at once, with the usual waits, or once `wait` is over: more than a minute stops
    the whole host group.
    """

    def __init__(self, text: str, *, may_pass: bool = False, wait: timedelta = timedelta(0)) -> None:
        super().__init__(text)
        self.may_pass = may_pass
        self.wait = wait


class ParseError(Exception):
    """A unit cannot be read at all; its text is the reason shown in quarantine."""
