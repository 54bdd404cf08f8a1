"""Reading an XBRL instance: each fact with the period, dimensions and unit that it refers to, and its footnotes.

Promises: the text comes in pieces and is never held whole; values are kept digit by digit; a fact that refers to a
context or unit that is not there, or whose number is none, is rejected by its place and the others are read. Never: an
entity is expanded, a schema is fetched, or a value that the instance does not give is derived.
"""

from __future__ import annotations

import re
import xml.parsers.expat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

from include.contract import ParseError, Rejected
from include.sources.sec.xbrl_parts import (
    CONTEXT,
    FOOTNOTES,
    ROOT,
    UNIT,
    Context,
    ContextPart,
    Footnote,
    Footnotes,
    Part,
    UnitPart,
)

_NIL = "http://www.w3.org/2001/XMLSchema-instance nil"
_LANGUAGE = "http://www.w3.org/XML/1998/namespace lang"

_ROOT = re.compile(rb"<(?:[A-Za-z_][\w.-]*:)?xbrl[\s>/]")
_DECLARED = re.compile(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([A-Za-z0-9._-]+)[\"']")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII).fullmatch
# Digits that a number is kept with, and how many of them stand behind the point; the text is kept whatever they are.
DIGITS, DECIMALS = 38, 15
# So short a text without an exponent fits in any case.
_SURELY_SHORT = 15


class Fact(NamedTuple):
    """One fact. `position` counts from one in the order of the instance; `number` is null where it does not fit."""

    position: int
    namespace: str
    name: str
    context_id: str
    context: Context
    unit_id: str | None
    unit: str | None
    decimals: str | None
    precision: str | None
    is_nil: bool
    text: str | None
    number: Decimal | None
    language: str | None
    fact_id: str | None


_Given = tuple[int, str, dict[str, str], str]


@dataclass
class Instance:
    """An instance that is being read: `facts` gives them one after the other; the rest is there once they are read.

    `charset` is what its bytes are where they do not say it themselves.
    """

    pieces: Iterable[bytes]
    charset: str
    count: int = 0
    rejected: list[Rejected] = field(default_factory=list)
    footnotes: list[Footnote] = field(default_factory=list)
    contexts: dict[str, Context] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)

    def facts(self) -> Iterator[Fact]:
        """Read the facts; call it once.

        Raises:
            ParseError: it is no instance, or its XML is broken, which may show only after some of them.
        """
        return _Reader(self).read()


def is_instance(head: bytes) -> bool:
    """Say whether a document that begins so is an instance."""
    return _ROOT.search(head) is not None


def is_inline(head: bytes) -> bool:
    """Say whether a document that begins so is a page with facts in it, of which EDGAR extracts an instance."""
    return b"/inlineXBRL" in head


class _Reader:
    """What the XML parser calls, and what becomes of it."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._parser: xml.parsers.expat.XMLParserType | None = None
        self._has_root = False
        self._texts: list[str] = []
        self._fact: tuple[str, dict[str, str]] | None = None
        self._fresh: list[_Given] = []
        self._names: dict[str, tuple[str, str]] = {}
        self._prefixes: dict[str, str] = {}
        self._namespaces: dict[str, str] = {}
        self._ids: dict[str, int] = {}
        self._links = Footnotes()

    def read(self) -> Iterator[Fact]:
        waiting: list[_Given] = []
        try:
            for piece in _without_blanks_before(self._instance.pieces):
                if self._parser is None:
                    self._parser = self._start(piece)
                self._parser.Parse(piece, False)
                yield from self._take(waiting, is_over=False)
            if self._parser is None:
                raise ParseError("the instance is empty")
            self._parser.Parse(b"", True)
        except xml.parsers.expat.ExpatError as error:
            raise ParseError(f"the instance is no well-formed XML: {error}") from None
        except LookupError as error:
            raise ParseError(f"the instance says that it is in a character set that nobody knows: {error}") from None
        yield from self._take(waiting, is_over=True)
        self._instance.footnotes.extend(self._links.found(self._ids))

    def _start(self, piece: bytes) -> xml.parsers.expat.XMLParserType:
        parser = xml.parsers.expat.ParserCreate(_encoding(piece, self._instance.charset), " ")
        parser.buffer_text = True
        parser.buffer_size = 1 << 16
        parser.StartDoctypeDeclHandler = _no_doctype
        parser.StartNamespaceDeclHandler = self._declare
        parser.StartElementHandler, parser.EndElementHandler = self._begin, self._end
        parser.CharacterDataHandler = self._texts.append
        return parser

    def _declare(self, prefix: str | None, namespace: str) -> None:
        if prefix:
            self._prefixes.setdefault(namespace, prefix)
            self._namespaces[prefix] = namespace

    # --- what stands at the top; within a context, a unit or footnotes, these call the parser's functions themselves

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        if "contextRef" in attributes:
            self._fact = name, attributes
            self._texts.clear()
        elif name == CONTEXT:
            self._enter(ContextPart(attributes.get("id", ""), self._instance.contexts, self._instance.rejected))
        elif name == UNIT:
            self._enter(UnitPart(attributes.get("id", ""), self._instance.units, self._namespaces))
        elif name == FOOTNOTES:
            self._enter(self._links)
        elif self._fact is not None:
            # What stands within a fact's own elements is not one word: a third is no thirteen.
            self._texts.append(" ")
        elif not self._has_root:
            self._has_root = True
            if name != ROOT:
                raise ParseError(f"it is no instance: its root is {name.rpartition(' ')[2]}")

    def _end(self, name: str) -> None:
        if self._fact is not None and self._fact[0] == name:
            _, attributes = self._fact
            self._instance.count += 1
            self._fresh.append((self._instance.count, name, attributes, "".join(self._texts)))
            self._fact = None

    def _enter(self, part: Part) -> None:
        assert self._parser is not None
        self._parser.StartElementHandler, self._parser.EndElementHandler = part.begin, part.end
        self._texts.clear()
        part.enter(self._texts, self._leave)

    def _leave(self) -> None:
        assert self._parser is not None
        self._parser.StartElementHandler, self._parser.EndElementHandler = self._begin, self._end

    # --- facts with what they refer to

    def _take(self, waiting: list[_Given], *, is_over: bool) -> Iterator[Fact]:
        """Give the facts that can be resolved; what they refer to may stand behind them."""
        if is_over:
            given, self._fresh = [*waiting, *self._fresh], []
        else:
            given, self._fresh = self._fresh, []
        contexts, units, names = self._instance.contexts, self._instance.units, self._names
        for each in given:
            position, element, attributes, text = each
            get = attributes.get
            context, unit_id = contexts.get(attributes["contextRef"]), get("unitRef")
            unit = units.get(unit_id) if unit_id is not None else None
            if context is None or (unit is None and unit_id is not None):
                if is_over:
                    self._reject(each, "its context is not there" if context is None else "its unit is not there")
                else:
                    waiting.append(each)
                continue
            is_nil = _NIL in attributes and attributes[_NIL].strip() in ("true", "1")
            number = None
            if unit is not None and not is_nil:
                text = text.strip()
                if _NUMBER(text):
                    number = Decimal(text) if len(text) <= _SURELY_SHORT and "e" not in text.lower() else fitting(text)
                elif text not in ("INF", "-INF", "NaN"):
                    self._reject(each, "its value is no number")
                    continue
            fact_id = get("id")
            if fact_id is not None:
                self._ids.setdefault(fact_id, position)
            namespace, name = names.get(element) or self._name(element)
            yield Fact(
                position, namespace, name, attributes["contextRef"], context, unit_id, unit, get("decimals"),
                get("precision"), is_nil, None if is_nil else text, number, get(_LANGUAGE), fact_id,
            )  # fmt: skip

    def _name(self, element: str) -> tuple[str, str]:
        namespace, _, local = element.rpartition(" ")
        prefix = self._prefixes.get(namespace)
        self._names[element] = namespace, f"{prefix}:{local}" if prefix else local
        return self._names[element]

    def _reject(self, each: _Given, reason: str) -> None:
        position, element, attributes, text = each
        words = f"{self._name(element)[1]} {attributes['contextRef']} {attributes.get('unitRef', '')} {text}"
        self._instance.rejected.append(Rejected(f"fact {position}", reason, words[:2000]))


def fitting(text: str) -> Decimal | None:
    """Return a number where the table's column can hold it with all of its digits, None otherwise."""
    number = Decimal(text)
    if not number.is_finite() or number.adjusted() >= DIGITS - DECIMALS:
        return None
    exponent = number.as_tuple().exponent
    return number if isinstance(exponent, int) and exponent >= -DECIMALS else None


def _encoding(piece: bytes, charset: str) -> str | None:
    """Return the character set to read by, None where the text itself says one.

    What says that it is UTF-8 or ASCII, or says nothing, is what its bytes are.
    """
    declared = _DECLARED.match(piece)
    names_another = declared is not None and declared[1].lower() not in (b"utf-8", b"utf8", b"us-ascii", b"ascii")
    return None if names_another or piece[:2] in (b"\xff\xfe", b"\xfe\xff") else charset


def _no_doctype(*_: Any) -> None:
    raise ParseError("the instance has a document type, which no instance may have: it is not read")


def _without_blanks_before(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """EDGAR puts line breaks before the XML declaration."""
    is_begun = False
    for piece in pieces:
        piece = piece if is_begun else piece.lstrip(b" \t\r\n")
        if piece:
            is_begun = True
            yield piece
