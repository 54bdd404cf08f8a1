"""FRED's stream: when it may ask, for what, and how one answer leads to the next.

Promises: a poll asks each series whether it was updated (one small request) and reads the year so far of those that
were; a backfill reads every year of its range, five at a time before 2026. Never: the key is in a request that is
planned, and no real-time period holds more vintages than FRED answers for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from typing import Any

from include.contract import Answer, Ask, Budget, Chunk, HostGroup, Mode, Request, Schedule, Span, Stream
from include.sources.fred import answers, spans, vintages
from include.sources.fred.answers import told
from include.sources.fred.spans import FOREVER, Stretch
from include.sources.fred.tables import SERIES, VINTAGES

HOST = "https://api.stlouisfed.org"
DESCRIPTION_URL, OBSERVATIONS_URL = f"{HOST}/fred/series", f"{HOST}/fred/series/observations"
ROWS_OF_A_PAGE = 100_000

# Two requests a second are counted by the second; what is said to come too fast waits for 20 seconds.
HOST_GROUP = HostGroup("fred", interval=timedelta(seconds=0.6), busy_wait=timedelta(seconds=20))

# What is loaded after a day's poll carries that day all the same: so far back an update still counts as new, and so
# far back a failed series was due for another try at least once.
OVERLAP = timedelta(days=3)
# So long after New Year the year before is still asked for.
NEW_YEAR = timedelta(days=7)


@dataclass(frozen=True)
class Catalogue:
    """The series to collect, in groups by name."""

    groups: Mapping[str, tuple[str, ...]]

    @property
    def series(self) -> tuple[str, ...]:
        """Every series once, in the order of the groups."""
        return tuple(dict.fromkeys(series for group in self.groups.values() for series in group))

    def of(self, keys: Sequence[str]) -> tuple[str, ...]:
        """Return the series that an operator's keys name, all where there are none; a group names all of its own."""
        if not keys:
            return self.series
        return tuple(dict.fromkeys(series for key in keys for series in self.groups.get(key, (key,))))

    def knows(self, key: str) -> bool:
        """Say whether a key names a series or a group."""
        return key in self.groups or key in self.series


def first_request(series: str, stretch: Stretch, *, is_over: bool, since: date | None = None) -> Request:
    """Return the request that begins a unit: for the series' description in a stretch of real time."""
    unit = f"{series}/{stretch.name}"
    return Request(
        key=unit,
        unit=unit,
        url=DESCRIPTION_URL,
        params=(
            ("series_id", series),
            ("file_type", "json"),
            ("realtime_start", stretch.eve.isoformat()),
            ("realtime_end", (stretch.last if is_over else FOREVER).isoformat()),
        ),
        # One series that FRED does not give must not stop the others.
        required=False,
        since=since,
    )


def plan(catalogue: Catalogue, ask: Ask) -> Iterator[Request]:
    """Plan one request per series: for the newest session, which covers the older ones, or for a chunk's year.

    The stretch of a session is its year so far. Where windows have gone before, a poll reads updated series only; what
    an operator named, what is pending and what is backfilled is read whatever was updated.
    """
    if ask.chunk:
        stretch = spans.of_year(ask.chunk["year"])
        is_over = date.fromisoformat(ask.chunk["today"]) > stretch.last
        yield first_request(ask.chunk["series"], stretch, is_over=is_over)
        return
    days = (*ask.sessions, *ask.closed)
    planned, wanted = set[str](), catalogue.of(ask.keys)
    since = ask.checkpoint - OVERLAP if ask.checkpoint and not ask.keys and ask.mode is Mode.POLL else None
    for request in _of_days(days, wanted, since, ask.pending):
        planned.add(request.key)
        yield request
    for key in ask.pending:
        found = spans.named(key)
        if found is None or key in planned or (ask.keys and found[0] not in wanted):
            continue
        series, stretch = found
        yield first_request(series, stretch, is_over=_is_over(stretch, days))


def _of_days(
    days: Sequence[date], wanted: Sequence[str], since: date | None, failed: Sequence[str]
) -> Iterator[Request]:
    if not days:
        return
    first = spans.of_year((min(days) - NEW_YEAR).year)
    stretch = spans.of_year(max(days).year)
    while stretch.last >= first.last:
        for series in wanted:
            # What failed before may have missed more than these days.
            news_only = None if f"{series}/{stretch.name}" in failed else since
            yield first_request(series, stretch, is_over=_is_over(stretch, days), since=news_only)
        stretch = spans.of_year(stretch.eve.year)


def _is_over(stretch: Stretch, days: Sequence[date]) -> bool:
    """Say whether a stretch has ended for certain: a later day has begun, or it is one of the five-year ones."""
    return max(days) > stretch.last if days else stretch.last.year < spans.FIRST_YEAR_BY_ITSELF


def follow(request: Request, answer: Answer) -> Sequence[Request]:
    """Return what follows an answer: the values after the description, and further pages of values.

    A series of which FRED keeps no vintages is asked for once more as it stands today.
    """
    said = told(answer.body.read())
    params = dict(request.params)
    is_open = params.get("realtime_end") == FOREVER.isoformat()
    if said.has_no_vintages or (said.document is not None and said.document.get("seriess") == []):
        return (_today(request),) if is_open else ()
    if said.document is None:
        return ()
    if "seriess" in said.document:
        updated = vintages.last_updated(answer)
        if request.since is not None and updated is not None and updated < request.since:
            return ()
        return (_page(request, 0),)
    # A page that is not of the form that we know, or not the one that was asked for, is the last: the parser says why.
    offset, rows, count = (said.document.get(name) for name in ("offset", "observations", "count"))
    if not (isinstance(offset, int) and isinstance(rows, list) and isinstance(count, int)):
        return ()
    is_last = not rows or offset + len(rows) >= count or str(offset) != params.get("offset", "0")
    return () if is_last else (_page(request, offset + len(rows)),)


def _page(request: Request, offset: int) -> Request:
    """Return the request for a page of values, in the real-time period of the one before it."""
    kept = tuple(pair for pair in request.params if pair[0] not in ("limit", "offset"))
    state = "" if any(name == "realtime_start" for name, _ in kept) else "/today"
    return Request(
        key=f"{request.unit}{state}/values/{offset}",
        unit=request.unit,
        url=OBSERVATIONS_URL,
        params=(*kept, ("limit", str(ROWS_OF_A_PAGE)), ("offset", str(offset))),
        required=False,
        since=request.since,
    )


def _today(request: Request) -> Request:
    """Return the same request without a real-time period: FRED then answers for today."""
    kept = tuple(pair for pair in request.params if not pair[0].startswith("realtime_"))
    name = "values/0" if request.url == OBSERVATIONS_URL else "description"
    return Request(
        key=f"{request.unit}/today/{name}",
        unit=request.unit,
        url=request.url,
        params=kept,
        required=False,
        since=request.since,
    )


def chunks(catalogue: Catalogue, span: Span) -> Iterator[Chunk]:
    """Return a chunk for each series and year, the newest year first; a replay has one for each unit."""
    for year in spans.years(span.start, span.end):
        newest = min(spans.of_year(year).last.year, span.end.year)
        if span.mode is Mode.REPLAY and year != newest:
            continue
        for series in catalogue.of(span.keys):
            asks: dict[str, Any] = {"series": series, "year": year, "today": span.today.isoformat()}
            yield Chunk(f"{series}/{year}", min(date(year, 12, 31), span.end), asks)


def observations(catalogue: Catalogue) -> Stream:
    """Return the stream that collects the series of a catalogue."""
    return Stream(
        name="fred.observations",
        title="Economic series with all their revisions, by day of publication in St. Louis",
        tables=(SERIES, VINTAGES),
        schedule=Schedule(
            cron="15 18 * * *",
            timezone="America/New_York",
            retry_first=timedelta(minutes=15),
            retry_every=timedelta(minutes=30),
            last_try=timedelta(hours=5),
            allowance=timedelta(minutes=30),
        ),
        calendar="DAILY",
        host_group=HOST_GROUP,
        budget=Budget(
            day_items=50_000_000,
            day_details=10 * max(len(catalogue.series), 100),
            slice_items=5_000_000,
            slice_seconds=180,
            reason="each series is asked once a day, and an updated one gives all its values, of which few are new",
        ),
        parser_version=vintages.PARSER_VERSION,
        plan=partial(plan, catalogue),
        classify=answers.classify,
        parse=vintages.parse,
        follow=follow,
        says_newest=vintages.says_newest,
        chunks=partial(chunks, catalogue),
        usual_requests=2,
        known_key=catalogue.knows,
        keys_are=f"series as {answers.CONFIGURATION} lists them, e.g. GDP, or groups: {', '.join(catalogue.groups)}",
        first_session=date(1921, 1, 1),
    )
