"""The scan over all companies: a row for each fiscal year since 2021, as filed first and by the newest filing.

The rules, of which each row is an outcome:

- A *report* is an annual one: 10-K, 10-KT, 20-F or 40-F, or an amendment of it. Its *year* ends at the newest end of a
  period of about a year (350 to 380 days, so 52 and 53 weeks as well) that is not after its filing; where it has none,
  as in a company's first year, of its periods of any length. So every company has its own years, whatever `fy` says.
- A value of a year ends on the year's last day, and begins within a week of the year's first where it is of a period.
- A line's concept is the first of its list that the first report of the year gives; the first that anybody gives where
  that report has none. The money's unit is the one in which most lines of the year are given.
- Of the rows of one concept, unit and period, `as_filed` is that of the earliest filing day, `latest` of the newest; on
  one day the smallest and the greatest accession. What restates a year is a newer filing of the same period. Proxy
  statements, which show a year's income rounded beside what was paid for it, restate nothing.

Promises: the same companies' files give the same bytes. Never: a value is worked out, rounded or taken from another
period; one that has more digits than the column holds is left out and named in `left_out`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal, InvalidOperation, localcontext
from functools import cache
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from include.sources.edgar.scan_lines import LINES, Line

if TYPE_CHECKING:
    import pyarrow as pa

PATH = "edgar/scan/finance.parquet"
SINCE = date(2021, 1, 1)
REPORTS = frozenset({"10-K", "10-K405", "10-KT", "20-F", "40-F"})
PROXIES = ("DEF", "PRE")
YEAR = range(350, 381)
AWAY = 7
AS_FILED, LATEST = "as_filed", "latest"
ROWS = 65_536
DIGITS, BEHIND = 38, 6
META: tuple[tuple[str, str, str], ...] = (
    ("cik", "int64", "Company, by its number at the SEC"),
    ("entity_name", "text", "Its name"),
    ("fiscal_year", "int32", "Fiscal year as the first report of it calls it; that of its last day where it does not"),
    ("period_start", "day", "First day of the year, null where nothing of a period is given"),
    ("period_end", "day", "Last day of the year"),
    ("basis", "text", "as_filed: values as given first; latest: by the newest filing that gives them"),
    ("currency", "text", "Unit of the money"),
    ("form", "text", "Form of the report that gave the year first; of the newest filing that gave one of the values"),
    ("accn", "text", "Its accession"),
    ("filed", "day", "Day on which it was filed"),
    ("lines", "int32", "How many of the lines have a value"),
    ("fallbacks", "text", "Lines that were not read from the first concept of their list, each with the concept"),
    ("left_out", "text", "Lines whose value has more digits than the column holds"),
)
_COLUMNS = (
    "cik",
    "entity_name",
    "taxonomy",
    "concept",
    "unit",
    "start",
    "end",
    "val",
    "accn",
    "fy",
    "form",
    "filed",
    "frame",
)
_DAY0 = date(1970, 1, 1)
# What a report that was filed since may be of: nothing older is looked at.
_OLDEST = (date(2020, 1, 1) - _DAY0).days
_SINCE = (SINCE - _DAY0).days
_PLACES: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
for _number, _line in enumerate(LINES):
    for _rank, _concept in enumerate(_line.concepts):
        _PLACES[_concept].append((_number, _rank))


class Fact(NamedTuple):
    """A row of a company's file; days are numbers since 1970."""

    concept: tuple[str, str]
    unit: str
    start: int | None
    end: int
    val: str
    accn: str
    fy: int | None
    form: str
    filed: int
    is_framed: bool


@cache
def schema() -> pa.Schema:
    """The schema of the scan."""
    import pyarrow as pa

    types = {"int64": pa.int64(), "int32": pa.int32(), "text": pa.string(), "day": pa.date32()}
    fields = [
        pa.field(name, types[kind], name not in ("cik", "period_end", "basis"), {"comment": about})
        for name, kind, about in META
    ]
    fields += [pa.field(line.name, pa.decimal128(DIGITS, BEHIND), True, {"comment": _about(line)}) for line in LINES]
    return pa.schema(fields, {"release": "edgar/scan", "key": "cik,period_end,basis"})


def _about(line: Line) -> str:
    return f"{line.about}: {', '.join(f'{taxonomy}:{concept}' for taxonomy, concept in line.concepts)}"


# --- reading a company's file


def facts_of(file: BinaryIO) -> tuple[int | None, str | None, list[Fact]]:
    """Return a company's number, name and the facts that the scan may be made of; no number where it has no facts."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    table = pq.read_table(
        file, columns=list(_COLUMNS), read_dictionary=["taxonomy", "concept"], use_threads=False, pre_buffer=False
    )
    if not table.num_rows:
        return None, None, []
    cik, name = table["cik"][0].as_py(), table["entity_name"][0].as_py()
    concept = table["concept"].combine_chunks()
    wanted = pc.is_in(concept.dictionary, value_set=_names())
    is_wanted = wanted.take(concept.indices)
    is_new = pc.greater_equal(table["end"].cast(pa.int32()), pa.scalar(_OLDEST, pa.int32()))
    found = table.filter(pc.and_(is_new, is_wanted))
    columns = {each: found[each] for each in _COLUMNS[2:]}
    days = {each: columns[each].cast(pa.int32()).to_pylist() for each in ("start", "end", "filed")}
    texts = {
        each: columns[each].to_pylist()
        for each in ("taxonomy", "concept", "unit", "val", "accn", "fy", "form", "frame")
    }
    facts = [
        Fact((taxonomy, concept), unit, start, end, val, accn, fy, form or "", filed, frame is not None)
        for taxonomy, concept, unit, start, end, val, accn, fy, form, filed, frame in zip(
            texts["taxonomy"], texts["concept"], texts["unit"], days["start"], days["end"], texts["val"], texts["accn"],
            texts["fy"], texts["form"], days["filed"], texts["frame"], strict=True,
        )
        if val is not None and (taxonomy, concept) in _PLACES and not (form or "").startswith(PROXIES)
    ]  # fmt: skip
    return cik, name, facts


@cache
def _names() -> pa.Array:
    import pyarrow as pa

    return pa.array(sorted({concept for _, concept in _PLACES}), pa.string())


# --- a company's fiscal years


@dataclass
class Year:
    """A fiscal year: its days, and the reports of it by filing day."""

    end: int
    reports: list[Fact] = field(default_factory=list)
    starts: Counter[int] = field(default_factory=Counter)

    @property
    def first(self) -> Fact:
        """A row of the report that gave it first."""
        return min(self.reports, key=lambda row: (row.filed, row.accn))

    @property
    def start(self) -> int | None:
        """Its first day: the one that most rows say, the earliest of several."""
        return min(self.starts, key=lambda day: (-self.starts[day], day), default=None)


def years_of(facts: Iterable[Fact]) -> dict[int, Year]:
    """Return the fiscal years of a company since 2021, by their last day."""
    by_report: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        if fact.form.removesuffix("/A") in REPORTS and fact.end <= fact.filed:
            by_report[fact.accn].append(fact)
    years: dict[int, Year] = {}
    for rows in by_report.values():
        whole = [row for row in rows if row.start is not None and row.end - row.start + 1 in YEAR]
        periods = whole or [row for row in rows if row.start is not None]
        end = max((row.end for row in periods or rows), default=0)
        if end < _SINCE:
            continue
        year = years.setdefault(end, Year(end))
        year.reports.append(rows[0])
        ending = [row.start for row in periods if row.end == end and row.start is not None]
        # Of a first year, which is shorter, the longest period is all of it.
        year.starts.update(ending if whole else sorted(ending)[:1])
    return years


# --- the rows of a year


def rows_of(cik: int, name: str | None, facts: Sequence[Fact]) -> Iterator[tuple[Any, ...]]:
    """Give a company's rows, the oldest year first, as filed before latest."""
    years = years_of(facts)
    at: dict[int, list[Fact]] = {end: [] for end in years}
    for fact in facts:
        if fact.end in at:
            at[fact.end].append(fact)
    for end in sorted(years):
        yield from _year(cik, name, years[end], at[end])


def _year(cik: int, name: str | None, year: Year, facts: Sequence[Fact]) -> Iterator[tuple[Any, ...]]:
    start, first = year.start, year.first
    given: list[dict[int, list[Fact]]] = [defaultdict(list) for _ in LINES]
    for fact in facts:
        for number, place in _PLACES[fact.concept]:
            if _fits(LINES[number], fact, start):
                given[number][place].append(fact)
    currency = _currency(given)
    chosen: list[tuple[int, list[Fact]] | None] = []
    for line, ranks in zip(LINES, given, strict=True):
        unit = {"per_share": f"{currency}/shares", "shares": "shares"}.get(line.kind, currency)
        there = {rank: rows for rank in sorted(ranks) if (rows := [row for row in ranks[rank] if row.unit == unit])}
        own = next((rank for rank, rows in there.items() if any(row.accn == first.accn for row in rows)), None)
        rank = own if own is not None else next(iter(there), None)
        chosen.append(None if rank is None else (rank, there[rank]))
    fallbacks = ";".join(
        f"{line.name}={':'.join(line.concepts[each[0]])}"
        for line, each in zip(LINES, chosen, strict=True)
        if each and _is_fallback(line, each[0])
    )
    begins = None if start is None else _DAY0 + timedelta(days=start)
    called = first.fy if first.fy is not None else (_DAY0 + timedelta(days=year.end)).year
    for basis, best in ((AS_FILED, min), (LATEST, max)):
        taken = [None if each is None else best(each[1], key=_order) for each in chosen]
        values, left_out = _values(taken)
        newest = max((row for row in taken if row is not None), key=_order, default=first) if basis == LATEST else first
        yield (
            cik,
            name,
            called,
            begins,
            _DAY0 + timedelta(days=year.end),
            basis,
            currency,
            newest.form or None,
            newest.accn,
            _DAY0 + timedelta(days=newest.filed),
            sum(value is not None for value in values),
            fallbacks or None,
            left_out or None,
            *values,
        )


def _order(row: Fact) -> tuple[int, str, bool, str]:
    """The order of filings; within one, the row that its frame shows is the later one."""
    return row.filed, row.accn, row.is_framed, row.val


def _fits(line: Line, fact: Fact, start: int | None) -> bool:
    if line.kind == "stock":
        return fact.start is None
    return fact.start is not None and start is not None and abs(fact.start - start) <= AWAY


def _is_fallback(line: Line, rank: int) -> bool:
    """Whether a concept is not the first of its taxonomy's."""
    return rank not in (0, len(line.us))


def _currency(given: Sequence[dict[int, list[Fact]]]) -> str | None:
    """The unit in which most lines of money are given; of several the first by name."""
    counts: Counter[str] = Counter()
    for line, ranks in zip(LINES, given, strict=True):
        if line.kind in ("flow", "stock"):
            counts.update({row.unit for rows in ranks.values() for row in rows})
    return min(counts, key=lambda unit: (-counts[unit], unit), default=None)


def _values(taken: Sequence[Fact | None]) -> tuple[list[Decimal | None], str]:
    values: list[Decimal | None] = []
    left_out: list[str] = []
    with localcontext() as context:
        context.prec = DIGITS + 20
        for line, row in zip(LINES, taken, strict=True):
            value = None if row is None else _exact(row.val)
            values.append(value)
            if row is not None and value is None:
                left_out.append(line.name)
    return values, ",".join(left_out)


def _exact(text: str) -> Decimal | None:
    """The number of a text, None where the column cannot hold it exactly."""
    try:
        number = Decimal(text)
        held = number.quantize(Decimal(1).scaleb(-BEHIND))
    except InvalidOperation:
        return None
    return held if held == number and held.adjusted() < DIGITS - BEHIND else None


# --- files


def piece(files: Iterable[Callable[[], BinaryIO]], target: BinaryIO) -> None:
    """Write the rows of some companies, each of whose files is opened when it is read."""
    rows: list[tuple[Any, ...]] = []
    for opened in files:
        with opened() as file:
            cik, name, facts = facts_of(file)
        if cik is not None:
            rows += rows_of(cik, name, facts)
    _write([_table(rows)], target)


def join(pieces: Iterable[BinaryIO], target: BinaryIO) -> int:
    """Write the rows of all pieces into one file, whose row groups do not tell where a piece ended; return how many."""
    import pyarrow.parquet as pq

    return _write((pq.read_table(each, schema=schema(), use_threads=False) for each in pieces), target)


def _table(rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    import pyarrow as pa

    columns = zip(*rows, strict=True) if rows else [()] * len(schema())
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema(), strict=True)], schema=schema())


def _write(tables: Iterable[pa.Table], target: BinaryIO) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    count = 0
    with pq.ParquetWriter(
        target,
        schema(),
        compression="zstd",
        compression_level=3,
        version="2.6",
        data_page_version="1.0",
        store_schema=False,
    ) as writer:
        kept = schema().empty_table()
        for table in tables:
            kept = pa.concat_tables([kept, table.cast(schema())])
            while kept.num_rows >= ROWS:
                writer.write_table(kept.slice(0, ROWS).combine_chunks(), row_group_size=ROWS)
                kept, count = kept.slice(ROWS), count + ROWS
        if kept.num_rows or not count:
            writer.write_table(kept.combine_chunks(), row_group_size=ROWS)
    return count + kept.num_rows
