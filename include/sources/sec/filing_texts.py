"""Telling and reading complete submissions: what they hold, document by document.

Promises: a document is named by its place in the stored text and its hash, and can be cut out of it; a text that was
cut off is asked for again before it is taken as it is, and then told. Never: the number that the header declares
rejects anything, and no page for people counts as a submission.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from include.contract import Answer, AnswerClass, AnswerError, Batch, Parsed, ParseError, Rejected, Unit
from include.sources.sec import answers, headers, index, submission, xbrl
from include.sources.sec.filing_plans import is_index
from include.sources.sec.filing_tables import DOCUMENTS, TEXTS
from include.sources.sec.headers import Header
from include.sources.sec.submission import Document, Submission

PARSER_VERSION = 1
# A text that ends too early is asked for so often; then it is believed to be like that.
_BELIEVED_AFTER = 3
_TAIL = 2048
# The number of a filing in the first lines of its text, in the forms of all times.
_NAMED = re.compile(
    rb"(?:<(?:SEC|IMS)-(?:DOCUMENT|HEADER)>\s*|^ACCESSION NUMBER:\s*|<ACCESSION-NUMBER>\s*)(\d{10}-\d\d-\d{6})",
    re.MULTILINE,
)
_BLOCK = 1 << 18


def classify(answer: Answer) -> AnswerClass:
    """Tell what the SEC answered to a request for a submission, or for the index of a day.

    Raises:
        AnswerError: see `answers.classify`; or it is no submission, is another filing's, or was cut off and is worth
            another try.
    """
    if is_index(answer.request):
        return index.classify(answer)
    told = answers.classify(answer)
    if told is not AnswerClass.DATA:
        return told
    head, tail = _ends(answer)
    if not submission.is_submission(head):
        start = head[:60].decode("ascii", "replace")
        raise AnswerError(f"the SEC answers 200 with something that is no submission: it begins with {start!r}")
    if (wrong := _named_in(head, answer.request.unit)) is not None:
        raise AnswerError(f"{wrong}: nothing of it is taken", may_pass=True)
    is_asked = answer.request.read_from is None
    if is_asked and not submission.is_ended(head, tail) and answer.tries < _BELIEVED_AFTER:
        raise AnswerError("the submission was cut off: its end is missing", may_pass=True)
    return AnswerClass.DATA


def _ends(answer: Answer) -> tuple[bytes, bytes]:
    """Return the beginning and the end of a body of any size."""
    with answer.body.open() as body:
        head = last = body.read(_TAIL)
        while block := body.read(_BLOCK):
            last = (last + block)[-_TAIL:]
    return head, last


def filed_date(header: Header, unit: Unit) -> date:
    """Return the filing date: the header's, and where it has none, the one that the filing was asked for with."""
    given = headers.day(header.first("filed_date")) or unit.session_date
    assert given is not None
    return given


def accession_of(unit: Unit) -> str:
    """Return the number of the filing that a unit is about."""
    return unit.key.partition("/")[0]


def _named_in(head: bytes, unit: str) -> str | None:
    """Say what is wrong where a text begins as another filing than the one that its unit is about."""
    found = _NAMED.search(head)
    given, asked = found[1].decode() if found else None, unit.partition("/")[0]
    return f"the text says that it is {given}, not {asked}" if given not in (None, asked) else None


def insist_on_the_filing(found: Submission, header: Header, unit: Unit) -> None:
    """Refuse a text that says that it is another filing than the one that its unit is about.

    Raises:
        ParseError: it says so.
    """
    given = header.first("accession_number") or found.accession
    if given not in (None, accession_of(unit)):
        raise ParseError(f"the text says that it is {given}, not {accession_of(unit)}")


def parse(unit: Unit) -> Parsed:
    """Read a complete submission; the index of a day gives no rows here.

    Raises:
        ParseError: it is no submission, or another filing's.
    """
    answer = unit.answers[0]
    if is_index(answer.request):
        return Parsed(batches=())
    with answer.body.open() as body:
        found = submission.read(body)
        header = headers.parse(found.header)
        insist_on_the_filing(found, header, unit)
        filed = filed_date(header, unit)
        accession = accession_of(unit)
        rows, rejected, instances, inline, size = list[tuple[Any, ...]](), list[Rejected](), 0, None, 0
        for document in found.documents():
            rows.append(_row(accession, filed, document))
            instances += xbrl.is_instance(document.head)
            inline = inline or (document.filename if xbrl.is_inline(document.head) else None)
            if document.defect is not None:
                what = f"{document.type} {document.filename or ''} {document.description or ''}"
                rejected.append(Rejected(f"document {document.position}", document.defect, what[:2000]))
        size = found.size
    if not found.is_whole and not any("cut off" in each.reason for each in rejected):
        rejected.append(Rejected("end", "the text was cut off: its end is missing", found.header[:2000]))
    is_whole = found.is_whole and not any("cut off" in each.reason for each in rejected)
    text = (
        accession,
        filed,
        headers.day(found.released_on),
        found.is_pem,
        is_whole,
        size,
        headers.count(header.first("public_document_count")),
        len(rows),
        instances,
        inline,
    )
    return Parsed(batches=(Batch(DOCUMENTS, rows), Batch(TEXTS, [text])), rejected=tuple(rejected))


def _row(accession: str, filed: date, document: Document) -> tuple[Any, ...]:
    return (
        accession,
        document.position,
        filed,
        document.sequence,
        document.type,
        document.filename,
        document.description,
        document.wrapper,
        document.charset,
        document.is_uuencoded,
        document.start,
        document.length,
        document.size,
        document.sha256.hex(),
        document.defect,
    )
