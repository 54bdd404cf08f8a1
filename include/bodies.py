"""How the text of a filing is had: the ways that a source offers, which the analysis tries one after the other.

Promises: plain data and pure functions, like a stream's. Never: a request is sent or a row read here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from include.contract import Answer, Request, Stream


@dataclass(frozen=True)
class Reading:
    """One way to the text of a filing.

    `stream` says who is asked, at which rate and quota, how an answer is told apart and which pages follow; its name is
    what the requests are booked under. `request` asks for a filing by its receipt number. `text` reads the stored
    answers of all pages, given number and title; it raises ParseError where they cannot be read, and gives an empty
    text where they hold none. `with_key`: the source's key goes along.
    """

    name: str
    stream: Stream
    request: Callable[[str], Request]
    text: Callable[[str, str, Sequence[Answer]], str]
    with_key: bool = True
