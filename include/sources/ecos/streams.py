"""ECOS's stream: when it may ask, for what, and how one answer leads to the next.

Promises: the codes of a series are looked up in its statistic's list of items before its values are asked for; pages
follow the count that ECOS gives, whatever it lets through at once. Never: the key is in a request that is planned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import partial
from typing import Any
from urllib.parse import quote

from include.contract import Answer, Ask, Budget, Chunk, HostGroup, Request, Schedule, Span, Stream
from include.sources.ecos import answers, periods, values
from include.sources.ecos.answers import ITEMS, SEARCH, told
from include.sources.ecos.catalogue import CONFIGURATION, Catalogue, Series, series
from include.sources.ecos.tables import SERIES, VALUES

HOST = "https://ecos.bok.or.kr"
ROWS_OF_A_PAGE = 1_000
# 180 calls in three minutes, where about 300 are too many.
HOST_GROUP = HostGroup("ecos", interval=timedelta(seconds=1), penalty=answers.LOCKED_OUT)
# So long after New Year the year before is still asked for.
NEW_YEAR = timedelta(days=14)


def _request(unit: str, name: str, about: Mapping[str, Any], arguments: Sequence[str]) -> Request:
    """One call: everything is in the path, in its place, and a star is part of a code."""
    first, service = about["first"], about["service"]
    path = "/".join(quote(argument, safe="*") for argument in arguments)
    return Request(
        key=name,
        unit=unit,
        url=f"{HOST}/api/{service}/{{key}}/json/kr/{first}/{first + ROWS_OF_A_PAGE - 1}/{path}",
        # One series that ECOS does not give must not stop the others.
        required=False,
        about=about,
    )


def _items(unit: str, name: str, about: Mapping[str, Any]) -> Request:
    return _request(unit, name, {**about, "service": ITEMS}, [about["statistic"]])


def first_request(wanted: Series, stretch: str, year: int) -> Request:
    """Return the request that begins a unit: for the list of items of the series' statistic.

    `year` is the last one that is asked for of a series that is read as a whole.
    """
    unit = f"{wanted.name}/{stretch}"
    is_whole = stretch == periods.WHOLE
    about = {
        "statistic": wanted.statistic,
        "cycle": wanted.cycle,
        "items": list(wanted.items),
        "is_whole": is_whole,
        "from": periods.first_of(wanted.cycle, periods.FIRST_YEAR if is_whole else int(stretch)),
        "to": periods.last_of(wanted.cycle, year if is_whole else int(stretch)),
        "first": 1,
        "found": {},
    }
    return _items(unit, unit, about)


def plan(catalogue: Catalogue, ask: Ask) -> Iterator[Request]:
    """Plan one request for each series and stretch: all of a series, or of a daily one the years of the sessions."""
    wanted = catalogue.of(ask.keys)
    if ask.chunk:
        asked = series(ask.chunk["series"])
        assert asked is not None
        yield first_request(asked, ask.chunk["stretch"], ask.chunk["year"])
        return
    days, planned = (*ask.sessions, *ask.closed), set[str]()
    if days:
        years = range((min(days) - NEW_YEAR).year, max(days).year + 1)
        for each in wanted:
            for stretch in periods.stretches(each.cycle, years):
                request = first_request(each, stretch, max(days).year)
                planned.add(request.key)
                yield request
    for key in ask.pending:
        name, _, stretch = key.partition("/")
        found = series(name)
        if found is None or key in planned or (ask.keys and found not in wanted):
            continue
        if stretch.isdigit() if found.cycle == "D" else stretch == periods.WHOLE:
            year = max(days).year if days else ask.at.year if ask.at else LATEST_YEAR
            yield first_request(found, stretch, year)


# Where nobody says which year it is: later than any that ECOS has.
LATEST_YEAR = 2099


def follow(request: Request, answer: Answer) -> Sequence[Request]:
    """Return what follows an answer: further items until the series' own were found, then its values, page by page."""
    said, about = told(answer.body.read()), dict(request.about)
    seen = about["first"] - 1 + len(said.rows)
    if said.service == SEARCH:
        return (_values(request, {**about, "first": seen + 1}),) if said.rows and seen < said.total else ()
    if said.service != ITEMS:
        return ()
    found = answers.items_found(answer, said)
    if len(found) < len(about["items"]):
        more = {**about, "first": seen + 1, "found": found}
        return (_items(request.unit, f"{request.unit}/items/{seen + 1}", more),) if seen < said.total else ()
    begins = max((each["begins"] for each in found.values() if each["begins"]), default=None)
    ends = min((each["ends"] for each in found.values() if each["ends"]), default=None)
    if begins and begins > about["to"]:
        # The series begins later: there is nothing to be had.
        return ()
    since = begins if about["is_whole"] and begins else about["from"]
    return (_values(request, {**about, "from": since, "begins": begins, "ends": ends, "first": 1, "found": {}}),)


def says_newest(answer: Answer) -> tuple[str, date] | None:
    """Return the series whose items an answer lists and the first day of its last period; None: it does not say."""
    said, about = told(answer.body.read()), answer.request.about
    found = answers.items_found(answer, said) if said.service == ITEMS else {}
    ends = min((each["ends"] for each in found.values() if each["ends"]), default=None)
    if ends is None or len(found) < len(about["items"]):
        return None
    return answer.request.unit.partition("/")[0], periods.start_of(about["cycle"], ends)


def _values(request: Request, about: Mapping[str, Any]) -> Request:
    arguments = [about["statistic"], about["cycle"], about["from"], about["to"], *about["items"]]
    name = f"{request.unit}/values/{about['first']}"
    return _request(request.unit, name, {**about, "service": SEARCH}, arguments)


def chunks(catalogue: Catalogue, span: Span) -> Iterator[Chunk]:
    """Return a chunk for each daily series and year, the newest year first, and one for each other series."""
    for year in range(span.end.year, span.start.year - 1, -1):
        for each in catalogue.of(span.keys):
            if each.cycle != "D" and year != span.end.year:
                continue
            (stretch,) = periods.stretches(each.cycle, range(year, year + 1))
            asks = {"series": each.name, "stretch": stretch, "year": span.today.year}
            yield Chunk(f"{each.name}/{stretch}", min(date(year, 12, 31), span.end), asks)


def observations(catalogue: Catalogue) -> Stream:
    """Return the stream that collects the series of a catalogue."""
    return Stream(
        name="ecos.observations",
        title="Korean economic series by period",
        tables=(SERIES, VALUES),
        schedule=Schedule(
            cron="20 8 * * *",
            timezone="Asia/Seoul",
            retry_first=timedelta(minutes=15),
            retry_every=timedelta(minutes=30),
            last_try=timedelta(hours=5),
            allowance=timedelta(minutes=30),
        ),
        calendar="DAILY",
        # A description comes with every answer, so a window without a row is never right.
        empty_can_be_right=False,
        # Series grow, and are read as a whole: one that gives far less than it did was cut, or begins anew.
        least_share=0.8,
        host_group=HOST_GROUP,
        budget=Budget(
            day_items=2_000_000,
            day_details=10 * max(len(catalogue.all), 100),
            slice_items=200_000,
            slice_seconds=180,
            reason="each series is read as a whole once a day, a daily one by the year, as revisions move no date",
        ),
        parser_version=values.PARSER_VERSION,
        plan=partial(plan, catalogue),
        classify=answers.classify,
        parse=values.parse,
        follow=follow,
        says_newest=says_newest,
        chunks=partial(chunks, catalogue),
        usual_requests=2,
        known_key=catalogue.knows,
        keys_are=f"series as {CONFIGURATION} lists them, or groups: {', '.join(catalogue.groups)}",
        first_session=date(1950, 1, 1),
    )
