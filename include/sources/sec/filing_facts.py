"""Reading the XBRL of filings into rows: the instances in a submission, or one that EDGAR extracted later.

Promises: that a filing has no XBRL, that its instance is not made yet, and that it is broken are three things: a row
says the first two, and the third is in quarantine with the reason. Facts come as a stream, so that no instance stands
in memory. Never: a fact takes another one's place because it is about the same thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from include.contract import Answer, AnswerClass, AnswerError, Batch, Parsed, ParseError, Rejected, Request, Unit
from include.sources.sec import answers, filing_texts, headers, submission, xbrl
from include.sources.sec.filing_plans import Choice, details, instance_name, instance_request, is_index, xbrl_request
from include.sources.sec.filing_tables import FACTS, FOOTNOTES, INSTANCES, XBRL
from include.sources.sec.filing_texts import accession_of, filed_date, insist_on_the_filing
from include.sources.sec.names import FilingKey
from include.sources.sec.submission import Document, Look
from include.sources.sec.xbrl import Instance

PARSER_VERSION = 1
_BLOCK = 1 << 18


@dataclass(frozen=True)
class _Found:
    """What XBRL a submission has."""

    filed: date
    instances: tuple[Document, ...]
    page: str | None

    @property
    def awaited(self) -> str | None:
        """The instance that is still to be made, None where there is one or none is to be expected."""
        return instance_name(self.page) if self.page and not self.instances else None

    @property
    def state(self) -> str:
        """`facts`, `none` or `not_converted`."""
        return "facts" if self.instances else "not_converted" if self.page else "none"


def _is_instance_file(request: Request) -> bool:
    return request.unit.endswith("/instance")


def classify(answer: Answer) -> AnswerClass:
    """Tell what came: a submission, the index of a day, or an instance; one that is not made yet is not there yet.

    Raises:
        AnswerError: see `answers.classify`; or it is no instance.
    """
    if not _is_instance_file(answer.request):
        return filing_texts.classify(answer)
    told = answers.classify(answer)
    if told is AnswerClass.DATA:
        with answer.body.open() as body:
            if not body.read(_BLOCK).lstrip().startswith((b"<", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
                raise AnswerError("the SEC answers 200 with something that is no XML")
    return told


def follow(choice: Choice, request: Request, answer: Answer) -> Sequence[Request]:
    """Return what a submission or the index of a day leads to: an instance that is not in it, or single filings."""
    if is_index(request):
        return details(choice, xbrl_request, request, answer)
    key = FilingKey.of(request.key)
    if key is None or _is_instance_file(request):
        return ()
    try:
        found = _look(Unit(request.unit, request.session_date, (answer,)))
    except ParseError:
        return ()
    if found.awaited is None:
        return ()
    return (instance_request(FilingKey(key.accession, key.cik, found.filed), found.awaited),)


def _look(unit: Unit) -> _Found:
    with unit.answers[0].body.open() as body:
        found = submission.read(body)
        header = headers.parse(found.header)
        insist_on_the_filing(found, header, unit)
        filed = filed_date(header, unit)
        instances, page = list[Document](), None
        for document in found.documents():
            if document.is_uuencoded:
                continue
            if xbrl.is_instance(document.head):
                instances.append(document)
            elif xbrl.is_inline(document.head):
                page = page or document.filename
    return _Found(filed, tuple(instances), page)


def parse(unit: Unit) -> Parsed:
    """Read the instances of a submission, or one that came by itself; the index of a day gives no rows here.

    Raises:
        ParseError: it is no submission, or another filing's; while the rows come: an instance is broken.
    """
    answer = unit.answers[0]
    if is_index(answer.request):
        return Parsed(batches=())
    if _is_instance_file(answer.request):
        assert unit.session_date is not None
        name = answer.request.key.rpartition("/")[2]
        pages = _Pages(accession_of(unit), unit.session_date, (_Page(name, _charset(answer), answer, None),))
        return pages.parsed(())
    found = _look(unit)
    names = set[str]()
    given = []
    for document in found.instances:
        name = document.filename or f"document {document.position}"
        if name in names:
            name = f"{name} ({document.position})"
        names.add(name)
        given.append(_Page(name, document.charset, answer, document))
    row = (accession_of(unit), found.filed, found.state, found.awaited)
    return _Pages(accession_of(unit), found.filed, tuple(given)).parsed((row,))


@dataclass(frozen=True)
class _Page:
    """An instance and where its bytes are: a document of a submission, or all of an answer."""

    name: str
    charset: str
    answer: Answer
    document: Document | None

    def pieces(self) -> Iterator[bytes]:
        with self.answer.body.open() as body:
            if self.document is not None:
                yield from submission.cut(body, self.document)
                return
            while piece := body.read(_BLOCK):
                yield piece


@dataclass
class _Pages:
    """The rows of some instances; what is known only behind the facts waits for them."""

    accession: str
    filed: date
    pages: tuple[_Page, ...]
    rejected: list[Rejected] = field(default_factory=list)
    footnotes: list[tuple[Any, ...]] = field(default_factory=list)
    instances: list[tuple[Any, ...]] = field(default_factory=list)
    is_read: bool = False

    def parsed(self, rows: Iterable[tuple[Any, ...]]) -> Parsed:
        return Parsed(
            batches=(
                Batch(XBRL, list(rows)),
                Batch(FACTS, self._facts()),
                Batch(FOOTNOTES, self._behind(self.footnotes)),
                Batch(INSTANCES, self._behind(self.instances)),
            ),
            rejected=self.rejected,
        )

    def _behind(self, rows: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        if not self.is_read:
            for _ in self._facts():
                pass
        yield from rows

    def _facts(self) -> Iterator[tuple[Any, ...]]:
        for page in self.pages:
            yield from self._facts_of(page)
        self.is_read = True

    def _facts_of(self, page: _Page) -> Iterator[tuple[Any, ...]]:
        accession, name, filed = self.accession, page.name, self.filed
        instance = Instance(page.pieces(), page.charset)
        for fact in instance.facts():
            scheme, entity, kind, start, end, dimensions = fact.context
            yield (
                accession, name, fact.position, filed, fact.namespace, fact.name, scheme, entity, kind, start, end,
                dimensions, fact.unit, fact.decimals, fact.precision, fact.is_nil, fact.text, fact.number,
                fact.language, fact.context_id, fact.unit_id, fact.fact_id,
            )  # fmt: skip
        self.footnotes += [(accession, name, n.number, n.fact_position, filed, *n[2:]) for n in instance.footnotes]
        self.rejected += [Rejected(f"{name} {each.position}", each.reason, each.text) for each in instance.rejected]
        is_extracted = name.endswith("_htm.xml")
        counts = (instance.count, len(instance.rejected), len(instance.contexts), len(instance.units))
        self.instances.append((accession, name, filed, is_extracted, *counts, len(instance.footnotes)))


def _charset(answer: Answer) -> str:
    look = Look()
    with answer.body.open() as body:
        while piece := body.read(_BLOCK):
            look.add(piece)
    look.end()
    return look.charset
