"""DART's list of all companies: one archive with one XML document, read as a stream.

Promises: a company is read wherever its element stands, however the document is wrapped; the document is never whole in
memory; a list without a single company is an error and takes nothing away. Never: a company with a blank for its stock
code counts as listed.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from typing import Any, BinaryIO
from xml.etree import ElementTree

from include.contract import Ask, Batch, Mode, Parsed, ParseError, Rejected, Request, Unit
from include.sources.dart.answers import DAMAGED, HOST
from include.sources.dart.disclosures import day_of
from include.sources.dart.lists import is_company
from include.sources.dart.tables import CORPS

PARSER_VERSION = 1
KEY = "corps/list"
# The real one has about 40 MB; an archive that claims more than this is none of DART's.
LARGEST_DOCUMENT = 256 << 20
# More than this many rows that cannot be read are not kept one by one.
MOST_REJECTED = 1_000

_FIELDS = ("corp_code", "corp_name", "corp_eng_name", "stock_code", "modify_date")


def is_known(key: str) -> bool:
    """Say whether an operator's key names the list."""
    return key == KEY.partition("/")[0]


def plan(ask: Ask) -> Iterator[Request]:
    """Plan the one request for the whole list, where a session or its key asks for it."""
    if ask.sessions or KEY in ask.pending or (ask.mode is Mode.POLL and ask.keys):
        yield Request(key=KEY, unit=KEY, url=f"{HOST}/api/corpCode.xml", kind="list")


def parse(unit: Unit) -> Parsed:
    """Read the list as a stream of rows.

    Raises:
        ParseError: at once where it is no archive with one document; while the rows come where the document ends early
            or holds no company.
    """
    rejected: list[Rejected] = []
    unknown: list[str] = []
    document = _document(unit.answers[0].body.read())
    return Parsed((Batch(CORPS, _rows(document, rejected, unknown)),), rejected, unknown)


def _document(body: bytes) -> BinaryIO:
    try:
        archive = zipfile.ZipFile(io.BytesIO(body))
        members = [each for each in archive.infolist() if each.filename.lower().endswith(".xml")]
        if len(members) != 1:
            raise ParseError(f"the archive holds {len(members)} documents, not one")
        if members[0].file_size > LARGEST_DOCUMENT:
            raise ParseError(f"the document claims to have {members[0].file_size:,} bytes")
        return archive.open(members[0])  # type: ignore[return-value]
    except DAMAGED as error:
        raise ParseError(f"the archive cannot be opened: {error or type(error).__name__}") from None


def _rows(document: BinaryIO, rejected: list[Rejected], unknown: list[str]) -> Iterator[tuple[Any, ...]]:
    number = read = 0
    try:
        events = ElementTree.iterparse(document, events=("start", "end"))
        _, root = next(events)
        for event, element in events:
            if event != "end" or element.tag != "list":
                continue
            number += 1
            try:
                row = _row(element, unknown)
            except (ParseError, KeyError) as wrong:
                if len(rejected) < MOST_REJECTED:
                    reason = f"lacks {wrong}" if isinstance(wrong, KeyError) else str(wrong)
                    text = ElementTree.tostring(element, encoding="unicode")[:2000]
                    rejected.append(Rejected(f"company {number}", reason, text))
            else:
                read += 1
                yield row
            # What is read is let go, also in the elements around it.
            element.clear()
            root.clear()
    except (ElementTree.ParseError, StopIteration) as error:
        raise ParseError(f"the document is broken after {number} companies: {error or 'it is empty'}") from None
    except DAMAGED as error:
        raise ParseError(f"the archive is damaged after {number} companies: {error or type(error).__name__}") from None
    finally:
        document.close()
    if not read:
        raise ParseError(f"the document holds no company that can be read ({number} elements)")


def _row(element: ElementTree.Element, unknown: list[str]) -> tuple[Any, ...]:
    given = {child.tag: (child.text or "").strip() for child in element}
    extra = {name: value for name, value in given.items() if name not in _FIELDS}
    unknown.extend(name for name in extra if name not in unknown)
    if not is_company(given["corp_code"]):
        raise ParseError(f"{given['corp_code']!r} is not a company's number of eight digits")
    return (
        given["corp_code"],
        given["corp_name"],
        # Lists of earlier years lack it.
        given.get("corp_eng_name") or None,
        given["stock_code"] or None,
        day_of(given["modify_date"]),
        extra or None,
    )
