"""Reading Alpaca's pages of bars.

Promises: numbers are taken from the JSON text digit by digit, never through a binary float; a symbol's bars are put
together over pages; a bar that cannot be read is rejected by name and the others are kept; a symbol that was asked for
and has no bar is told. Never: a gap is filled, and no bar is dropped silently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

import msgspec

from include.contract import Answer, AnswerError, Batch, Outdated, Parsed, ParseError, Rejected, Unit
from include.sources.alpaca import answers, timeframes
from include.sources.alpaca.requests import Asking
from include.sources.alpaca.tables import DAILY_ASKED_NONE, DAILY_BARS, INTRADAY_ASKED_NONE, INTRADAY_BARS

PARSER_VERSION = 1
FIRST_SESSION = date(2016, 1, 4)
_FRESH = timedelta(days=100)
# Where no bar can be read, so many are told one by one; more are another format, which is told once.
MOST_REJECTED = 200

_Moment = Annotated[datetime, msgspec.Meta(tz=True)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
# No price and no volume has so many digits before the point.
_Number = Annotated[float, msgspec.Meta(lt=1e18)]
_MOST_DIGITS = 18


class _Exact(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A bar with its numbers as they stand in the text."""

    t: _Moment
    o: Decimal
    h: Decimal
    l: Decimal  # noqa: E741  (the upstream's name)
    c: Decimal
    # Whole numbers stay whole: a row of them costs less to send.
    v: int | Decimal
    n: _Count | None = None
    vw: Decimal | None = None


class _Look(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The same bar, looked at only to see that it can be read and when it was: half the cost."""

    t: _Moment
    o: _Number
    h: _Number
    l: _Number  # noqa: E741  (the upstream's name)
    c: _Number
    v: _Number
    n: _Count | None = None
    vw: _Number | None = None


# What has no token says neither that it is the last page nor that it is not.
class _ExactPage(msgspec.Struct):
    bars: dict[str, list[_Exact]] | None
    next_page_token: str | None


class _LookPage(msgspec.Struct):
    bars: dict[str, list[_Look]] | None
    next_page_token: str | None


class _RawPage(msgspec.Struct):
    bars: dict[str, list[msgspec.Raw]] | list[Any] | None
    next_page_token: str | None


class _EmptyPage(msgspec.Struct):
    bars: dict[str, msgspec.Raw] | list[msgspec.Raw] | msgspec.UnsetType | None = msgspec.UNSET
    message: str = ""


_EXACT, _LOOK = msgspec.json.Decoder(_ExactPage), msgspec.json.Decoder(_LookPage)
_RAW, _EMPTY = msgspec.json.Decoder(_RawPage), msgspec.json.Decoder(_EmptyPage)
_BAR = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NAMES = ("t", "o", "h", "l", "c", "v", "n", "vw")


def _is_empty(answer: Answer) -> bool:
    page = _EMPTY.decode(answer.body.read())
    if page.bars is msgspec.UNSET and page.message:
        raise AnswerError(f"Alpaca says in place of bars: {page.message[:300]}", may_pass=True)
    # What has no bars at all is of another form; its parser says so.
    return page.bars is not msgspec.UNSET and not page.bars


classify = answers.told(_is_empty)


@dataclass(frozen=True)
class _Page:
    """One page as it came: what it was asked by, its text, and whether every bar of it is as it should be."""

    about: Mapping[str, Any]
    body: bytes
    is_simple: bool


@dataclass
class _Findings:
    """What looking at the pages of a unit gave: who has bars, how each day closed, and what could not be read."""

    seen: dict[str, set[str]]
    closes: dict[str, dict[str, list[tuple[datetime, float]]]]
    rejected: list[Rejected]
    unknown: set[str]
    kept: int = 0


def parse(unit: Unit) -> Parsed:
    """Read all pages of a unit.

    Raises:
        ParseError: a page is no JSON of the form that is known, none of many bars can be read, or it is not known what
            was asked for.
    """
    about = unit.answers[0].request.about
    if not about:
        raise ParseError("it is not known what was asked for: the fetch has no description")
    findings = _Findings({}, {}, [], set())
    pages = tuple(_look_at(answer, findings) for answer in unit.answers)
    if len(findings.rejected) > MOST_REJECTED and not findings.kept:
        first = findings.rejected[0]
        raise ParseError(
            f"none of its {len(findings.rejected):,} bars can be read; the first, {first.position}: {first.reason}"
        )
    is_daily = _is_daily(about)
    return Parsed(
        batches=(
            Batch(DAILY_BARS if is_daily else INTRADAY_BARS, _Rows(pages)),
            Batch(
                DAILY_ASKED_NONE if is_daily else INTRADAY_ASKED_NONE,
                [row for adjustment, seen in findings.seen.items() for row in _none(about, adjustment, seen)],
            ),
        ),
        rejected=tuple(findings.rejected),
        unknown_columns=tuple(sorted(findings.unknown)),
        is_part=not about["is_whole"],
        outdated=tuple(_outdated(unit, about, findings)) if is_daily and about["is_whole"] else (),
    )


def _is_daily(about: Mapping[str, Any]) -> bool:
    timeframe = timeframes.parse(about["timeframe"])
    return timeframe is not None and timeframe.is_daily


def _none(about: Mapping[str, Any], adjustment: str, seen: set[str]) -> Iterator[tuple[Any, ...]]:
    """Rows for the symbols that were asked for and had no bar; the period begins with the same day each time."""
    first = date.fromisoformat(about["first"])
    for symbol in about["symbols"].split(","):
        if symbol not in seen:
            yield (first, symbol, about["timeframe"], about["feed"], adjustment, about["asof"])


def _look_at(answer: Answer, findings: _Findings) -> _Page:
    """Look at every bar of a page: can it be read, was it asked for."""
    body, about = answer.body.read(), answer.request.about
    seen = findings.seen.setdefault(about["adjustment"], set())
    asked = set(about["symbols"].split(","))
    low, high = timeframes.bounds(date.fromisoformat(about["first"]), date.fromisoformat(about["last"]))
    try:
        bars = _LOOK.decode(body).bars or {}
    except msgspec.DecodeError:
        bars = None
    is_simple = bars is not None and all(
        symbol in asked and _ascends(found) and (not found or (low <= found[0].t and found[-1].t < high))
        for symbol, found in bars.items()
    )
    if bars is not None and is_simple and _is_daily(about):
        is_simple = all(map(timeframes.is_midnight, {bar.t for found in bars.values() for bar in found}))
    page = _Page(about, body, is_simple)
    if bars is not None and is_simple:
        seen.update(symbol for symbol, found in bars.items() if found)
        findings.kept += sum(map(len, bars.values()))
        if _is_daily(about):
            closes = findings.closes.setdefault(about["adjustment"], {})
            for symbol, found in bars.items():
                closes.setdefault(symbol, []).extend([(bar.t, bar.c) for bar in found])
        return page
    for row in _slowly(page, findings):
        findings.kept += 1
        findings.closes.setdefault(about["adjustment"], {}).setdefault(row[1], []).append((row[3], float(row[10])))
    return page


def _ascends(bars: list[_Look]) -> bool:
    """Whether bars stand in order and no instant stands twice."""
    before = None
    for bar in bars:
        if before is not None and bar.t <= before:
            return False
        before = bar.t
    return True


@dataclass(frozen=True)
class _Rows:
    """The rows of all pages, made when they are asked for, so that many askings do not stand in memory as rows."""

    pages: tuple[_Page, ...]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        last: tuple[Any, ...] | None = None
        for page in self.pages:
            rows = _simply(page) if page.is_simple else _slowly(page, None)
            first = next(rows, None)
            if first is None:
                continue
            # The last bar of a page may stand on the next one too.
            if first != last:
                yield first
            last = first
            for last in rows:
                yield last


def _simply(page: _Page) -> Iterator[tuple[Any, ...]]:
    about = page.about
    timeframe, feed, adjustment, asof = (about[name] for name in ("timeframe", "feed", "adjustment", "asof"))
    first, last = date.fromisoformat(about["first"]), date.fromisoformat(about["last"])
    day_of = timeframes.day_of if first != last else lambda instant: first
    for symbol, bars in (_EXACT.decode(page.body).bars or {}).items():
        for b in bars:
            yield (
                day_of(b.t), symbol, timeframe, b.t, feed, adjustment, asof, b.o, b.h, b.l, b.c, b.v, b.n, b.vw,
            )  # fmt: skip


def _slowly(page: _Page, findings: _Findings | None) -> Iterator[tuple[Any, ...]]:
    """Read a page bar by bar, because one of them is not as it should be; tell what is wrong with which.

    Raises:
        ParseError: it is no page of bars at all.
    """
    about = page.about
    asked, is_daily = set(about["symbols"].split(",")), _is_daily(about)
    low, high = timeframes.bounds(date.fromisoformat(about["first"]), date.fromisoformat(about["last"]))
    try:
        bars = _RAW.decode(page.body).bars or {}
    except msgspec.DecodeError as error:
        raise ParseError(f"page {about['page'] + 1} is no JSON of bars: {error}") from None
    if not isinstance(bars, dict):
        raise ParseError(f"page {about['page'] + 1} has a list of bars where symbols should be named")
    for symbol, found in bars.items():
        kept: dict[datetime, tuple[Any, ...]] = {}
        if findings is not None and found:
            # Who has bars that cannot be read has bars.
            findings.seen[about["adjustment"]].add(symbol)
        for number, raw in enumerate(found, start=1):
            try:
                row, unknown = _row(about, symbol, bytes(raw))
                if symbol not in asked:
                    raise ValueError(f"{symbol} was not asked for")
                if not low <= row[3] < high:
                    raise ValueError(f"{row[3].isoformat()} is outside of the period that was asked for")
                if is_daily and not timeframes.is_midnight(row[3]):
                    raise ValueError(f"{row[3].isoformat()} is no midnight in New York, at which a day's bar begins")
                if row[3] in kept and kept[row[3]] != row:
                    raise ValueError(f"{row[3].isoformat()} stands twice with different values")
            except (ValueError, OverflowError, InvalidOperation, msgspec.DecodeError) as error:
                if findings is not None:
                    position = f"{symbol} {about['adjustment']} page {about['page'] + 1} bar {number}"
                    findings.rejected.append(
                        Rejected(position, str(error), bytes(raw).decode("utf-8", "replace")[:2000])
                    )
                continue
            if findings is not None:
                findings.unknown.update(unknown)
            if row[3] not in kept:
                kept[row[3]] = row
                yield row


def _row(about: Mapping[str, Any], symbol: str, raw: bytes) -> tuple[tuple[Any, ...], set[str]]:
    """Read one bar with whatever else it carries."""
    fields = _BAR.decode(raw)
    known = {name: value for name, value in fields.items() if name in _NAMES}
    bar = msgspec.json.decode(msgspec.json.encode(known), type=_Exact)
    for name in ("o", "h", "l", "c", "v", "vw"):
        number = getattr(bar, name)
        # A text in a number's place may say NaN.
        if number is not None and not (
            Decimal(number).is_finite() and -_MOST_DIGITS <= Decimal(number).adjusted() < _MOST_DIGITS
        ):
            raise ValueError(f"{name} is {str(number)[:60]}, which is no price and no volume")
    extra = {name: msgspec.json.decode(value) for name, value in fields.items() if name not in _NAMES}
    row: tuple[Any, ...] = (
        timeframes.day_of(bar.t), symbol, about["timeframe"], bar.t, about["feed"], about["adjustment"], about["asof"],
        bar.o, bar.h, bar.l, bar.c, bar.v, bar.n, bar.vw,
    )  # fmt: skip
    return ((*row, extra) if extra else row), set(extra)


# --- splits


def _outdated(unit: Unit, about: Mapping[str, Any], findings: _Findings) -> Iterator[Outdated]:
    """Tell which months of which symbols were adjusted before a split that this month shows.

    Where raw and adjusted prices of a day differ there was a split later: on the first day from which on they agree,
    or after the period. Months that were read before that day hold prices that Alpaca has rewritten since. Only a
    period that was fresh when it was asked for tells that; of an older one the splits have been seen long ago.
    """
    timeframe = timeframes.parse(about["timeframe"])
    assert timeframe is not None
    first, last = timeframe.period(date.fromisoformat(about["last"]))
    if unit.answers[0].sent_at - timeframes.midnight(last) > _FRESH:
        return
    raw = findings.closes.get("raw", {})
    for symbol, closes in findings.closes.get("split", {}).items():
        if closes == raw.get(symbol):
            continue
        split = _split_day(dict(raw.get(symbol, ())), dict(closes), after=last + timedelta(days=1))
        if split is not None:
            group = unit.key.partition("/")[0]
            yield from _months_before(symbol, group, timeframe, about["feed"], first, split)


def _split_day(raw: Mapping[datetime, float], adjusted: Mapping[datetime, float], after: date) -> date | None:
    """Return the day of the newest split that the closes of a month show, None where there was none."""
    differs = [moment for moment, close in adjusted.items() if moment in raw and raw[moment] != close]
    if not differs:
        return None
    return min((timeframes.day_of(moment) for moment in raw if moment > max(differs)), default=after)


def _months_before(
    symbol: str, group: str, timeframe: timeframes.Timeframe, feed: str, first: date, split: date
) -> Iterator[Outdated]:
    since = timeframes.midnight(split)
    while (last := first - timedelta(days=1)) >= FIRST_SESSION:
        first = last.replace(day=1)
        alone = Asking(symbol, timeframe, last, feed)
        variant = f"{timeframe.name}-{feed}/{timeframe.period_name(last)}"
        yield Outdated(
            key=alone.key,
            session_date=last,
            unit=f"{group}/{variant}",
            covers=(f"{symbol}/{variant}", f"{group}/{variant}"),
            since=since,
        )
