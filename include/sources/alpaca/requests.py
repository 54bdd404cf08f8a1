"""What is asked for bars: which symbols together, for which period, in which form, and what follows an answer.

A key is `group/length-feed/day`: the group is `32.7` (the eighth of 32 groups) or a list of symbols; the period is
the month of the day for bars of a day or longer, through that day, and the day itself for shorter ones. A unit is the
group's whole period, so that every bar belongs to one unit whoever asked for it.

Promises: pages are filled; feed, adjustment and symbol mapping are always said and never left to the account's
default; nothing is asked for that the free plan refuses. Never: a page token is looked into, and no page is left out
silently.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

import msgspec

from include.contract import Amended, Answer, AnswerError, Ask, Chunk, Mode, Request, Span
from include.sources.alpaca import symbols as letters
from include.sources.alpaca import timeframes
from include.sources.alpaca.timeframes import PAGE_ROWS, Timeframe

URL = "https://data.alpaca.markets/v2/stocks/bars"

# Consolidated prices of all exchanges: the free plan may have them when they are a quarter of an hour old.
FEED = "sip"
FRESHEST = timedelta(minutes=16)
# Symbols are taken literally: a bar stays under the name that it was traded under, whatever the company is called
# later, and a name that is used again does not pull in another company's past.
LITERAL = "-"
# Daily bars are asked for raw and adjusted for splits in one unit: where the two differ tells when a split was.
DAILY_ADJUSTMENTS = ("raw", "split")
INTRADAY_ADJUSTMENTS = ("raw",)
# The month before is read again while the new one is young: at least five sessions.
_DAYS_OF_LOOKING_BACK = 8
# No unit has so many pages; a token that never ends must not be followed for ever.
MOST_PAGES = 400

_KEY = re.compile(r"(?P<group>[^/]+)/(?P<timeframe>[^/-]+)-(?P<feed>[a-z_]+)/(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})")
_INVALID = re.compile(r"invalid symbol(?:s|\(s\))?:?\s*[\"']?(?P<symbol>[^\s\"',;]+)", re.IGNORECASE)


@dataclass(frozen=True)
class Asking:
    """One thing to ask for: a group's period through a day."""

    group: str
    timeframe: Timeframe
    through: date
    feed: str = FEED

    @property
    def key(self) -> str:
        """The name of the request."""
        return f"{self.group}/{self.timeframe.name}-{self.feed}/{self.through.isoformat()}"

    @property
    def adjustments(self) -> tuple[str, ...]:
        """In which forms the bars are asked for, one after the other."""
        return DAILY_ADJUSTMENTS if self.timeframe.is_daily else INTRADAY_ADJUSTMENTS


def read_key(key: str) -> Asking | None:
    """Read a request's name; None where it is none."""
    found = _KEY.fullmatch(key)
    timeframe = timeframes.parse(found["timeframe"]) if found else None
    if found is None or timeframe is None:
        return None
    return Asking(found["group"], timeframe, date.fromisoformat(found["day"]), found["feed"])


def plan(ask: Ask, timeframe: Timeframe) -> Iterator[Request]:
    """Plan the requests for bars of one length, the newest period first, then the pending keys.

    Args:
        ask: `keys` limits it to symbols; without them the subjects are asked for, or the default list.
        timeframe: the length of the bars.
    """
    universe = universe_of(ask.subjects)
    if ask.chunk:
        length = timeframes.parse(ask.chunk.get("timeframe", "")) or timeframe
        # A group may have nobody left when its chunk is worked.
        days = _days_of(ask.chunk) if letters.members(ask.chunk["group"], universe) else ()
        yield from (request_for(Asking(ask.chunk["group"], length, through), universe, ask.at) for through in days)
        return
    wanted = _wanted(ask.keys, universe, timeframe)
    due = [
        request_for(Asking(group, timeframe, through), universe, ask.at)
        for through in _days(ask, timeframe)
        for group in wanted
    ]
    keys, units = {request.key for request in due}, {request.unit for request in due}
    pending = [
        request_for(asking, universe, ask.at)
        for key in ask.pending
        if key not in keys and (asking := read_key(key)) is not None
        if asking.timeframe.is_daily == timeframe.is_daily and letters.members(asking.group, universe)
    ]
    # What is asked for last of a unit is what it says: an earlier day of a period goes before the later one.
    yield from (request for request in pending if request.unit in units)
    yield from due
    yield from (request for request in pending if request.unit not in units)
    for day in ask.closed if not timeframe.is_daily else ():
        for group in wanted[:1]:
            asked = request_for(Asking(group, timeframe, day), universe, ask.at)
            yield replace(asked, expected=False, required=False)


def universe_of(subjects: Sequence[str]) -> tuple[str, ...]:
    """Whom to ask for where nobody is named: what the list of assets holds, or the default list."""
    return tuple(filter(letters.is_well_formed, subjects)) or letters.DEFAULT


def _wanted(keys: Sequence[str], universe: tuple[str, ...], timeframe: Timeframe) -> list[str]:
    """The groups to ask for, or the named symbols in lists."""
    size = timeframe.group_size
    if keys:
        return letters.lists(keys, letters.group_count(len(universe), size), size)
    return letters.groups_of(universe, size)


def chunks(span: Span, timeframe: Timeframe) -> Iterator[Chunk]:
    """Name the pieces of a backfill or replay: a month and a group of symbols; for a replay a month.

    A month is asked for whole, whichever of its days are in the span; of short bars only the days of the span.
    """
    timeframe = timeframes.parse(span.timeframe) or timeframe
    beside = f"{timeframe.name}/" if span.timeframe else ""
    month = span.end
    wanted = _wanted(span.keys, universe_of(span.subjects), timeframe)
    while month >= span.start:
        first, last = month.replace(day=1), min(timeframes.month_end(month), span.end)
        if span.mode is Mode.REPLAY:
            days = {"first": max(first, span.start).isoformat(), "last": last.isoformat()}
            if timeframe.is_daily:
                days = {"first": first.isoformat(), "last": timeframes.month_end(month).isoformat()}
            yield Chunk(f"{month:%Y-%m}", last, days | ({"keys": list(span.keys)} if span.keys else {}))
        else:
            through = last
            if timeframe.is_daily and timeframes.month_end(month) < span.today:
                through = timeframes.month_end(month)
            since = through if timeframe.is_daily else max(first, span.start)
            for group in wanted:
                asks = {"group": group, "since": since.isoformat(), "through": through.isoformat()}
                asks |= {"timeframe": timeframe.name} if span.timeframe else {}
                yield Chunk(f"{month:%Y-%m}/{beside}{group}", last, asks)
        month = first - timedelta(days=1)


def _days_of(chunk: Mapping[str, Any]) -> Iterator[date]:
    """The days of a chunk, newest first, without weekends; for daily bars the one day through which is asked."""
    day, since = date.fromisoformat(chunk["through"]), date.fromisoformat(chunk["since"])
    yield from (each for each in _back(day, since) if each == since == day or each.weekday() < 5)


def _back(day: date, since: date) -> Iterator[date]:
    while day >= since:
        yield day
        day -= timedelta(days=1)


def _days(ask: Ask, timeframe: Timeframe) -> list[date]:
    """The days through which something is asked for, newest first."""
    days = sorted({*ask.sessions, *([ask.newest] if ask.newest else [])}, reverse=True)
    if not timeframe.is_daily or not days:
        return days
    newest = days[0]
    months: dict[date, date] = {}
    for day in days:
        first, last = timeframe.period(day)
        months.setdefault(first, newest if first <= newest <= last else last)
    if ask.newest is not None and newest.day <= _DAYS_OF_LOOKING_BACK:
        first, last = timeframe.period(newest.replace(day=1) - timedelta(days=1))
        months.setdefault(first, last)
    return sorted(months.values(), reverse=True)


def is_of(unit: str, keys: Sequence[str]) -> bool:
    """Say whether one of some symbols is in a unit's group, however many groups there were when it was asked for."""
    return letters.holds_any(unit.partition("/")[0], keys)


def request_for(asking: Asking, universe: tuple[str, ...], at: datetime | None) -> Request:
    """Return the first request of what is asked for."""
    chosen = letters.members(asking.group, universe)
    first, last = asking.timeframe.period(asking.through)
    groups = letters.group_count(len(universe), asking.timeframe.group_size)
    group = asking.group if letters.is_group(asking.group) else letters.group_of(chosen[0], groups)
    # A daily bar is stamped with the midnight before its session.
    end = timeframes.midnight(min(asking.through, last) + timedelta(days=0 if asking.timeframe.is_daily else 1))
    if not asking.timeframe.is_daily:
        end -= timedelta(seconds=1)
    start = timeframes.midnight(first)
    if at is not None and end > at - FRESHEST:
        end = max((at - FRESHEST).astimezone(timeframes.NEW_YORK).replace(microsecond=0), start)
    about: dict[str, Any] = {
        "symbols": ",".join(chosen),
        "timeframe": asking.timeframe.name,
        "feed": asking.feed,
        "adjustment": asking.adjustments[0],
        "asof": LITERAL,
        "first": first.isoformat(),
        "last": asking.through.isoformat(),
        "is_whole": letters.is_group(asking.group),
        "page": 0,
    }
    params = {
        "symbols": about["symbols"],
        "timeframe": asking.timeframe.name,
        "start": start.isoformat(),
        "end": end.isoformat(),
        "limit": str(PAGE_ROWS),
        "adjustment": about["adjustment"],
        "asof": LITERAL,
        "feed": asking.feed,
        "sort": "asc",
    }
    return Request(
        key=asking.key,
        unit=f"{group}/{asking.timeframe.name}-{asking.feed}/{asking.timeframe.period_name(asking.through)}",
        url=URL,
        session_date=asking.through,
        params=tuple(params.items()),
        about=about,
    )


# --- what follows an answer


class _Page(msgspec.Struct):
    next_page_token: str | None


_TOKEN = msgspec.json.Decoder(_Page)


def follow(request: Request, answer: Answer) -> Sequence[Request]:
    """Return the next page, or the first one of the next adjustment, until there is none.

    Raises:
        AnswerError: a page's token is one that led here, or there are more pages than any unit has.
    """
    try:
        token = _TOKEN.decode(answer.body.read()).next_page_token
    except msgspec.DecodeError:
        # Whether there are more pages is not said: the parser refuses the unit.
        return ()
    about, params = dict(request.about), dict(request.params)
    about["page"] += 1
    if about["page"] >= MOST_PAGES:
        raise AnswerError(f"there are more than {MOST_PAGES} pages; what came so far is kept and not applied")
    if token:
        # The token of one earlier page is kept, of a later one each time that the number of pages has doubled: pages
        # that lead round in a circle, of whatever length, come by it again.
        if token in (params.get("page_token"), about.get("passed")):
            raise AnswerError("the token of the next page has led here before: the pages do not go on")
        if about["page"] & (about["page"] - 1) == 0:
            about["passed"] = token
        params["page_token"] = token
        return (_again(request, about, params),)
    adjustments = DAILY_ADJUSTMENTS if _is_daily(about) else INTRADAY_ADJUSTMENTS
    following = adjustments[adjustments.index(about["adjustment"]) + 1 :]
    if not following:
        return ()
    params.pop("page_token", None)
    about.pop("passed", None)
    params["adjustment"] = about["adjustment"] = following[0]
    return (_again(request, about, params),)


def _is_daily(about: Mapping[str, Any]) -> bool:
    timeframe = timeframes.parse(about["timeframe"])
    return timeframe is not None and timeframe.is_daily


def _again(request: Request, about: dict[str, Any], params: dict[str, str]) -> Request:
    return replace(request, about=about, params=tuple(params.items()))


def amend(request: Request, answer: Answer) -> Amended | None:
    """Return the request without the symbol that Alpaca calls invalid; None where that leaves nothing."""
    if answer.status not in (400, 422):
        return None
    reason = message(answer)
    found = _INVALID.search(reason)
    chosen = str(request.about["symbols"]).split(",")
    asking = read_key(request.key)
    if found is None or asking is None or found["symbol"] not in chosen or len(chosen) == 1:
        return None
    rest = ",".join(symbol for symbol in chosen if symbol != found["symbol"])
    about, params = {**request.about, "symbols": rest}, {**dict(request.params), "symbols": rest}
    alone = replace(asking, group=found["symbol"])
    return Amended(_again(request, about, params), alone.key, reason[:200])


class _Message(msgspec.Struct):
    message: str = ""


def message(answer: Answer) -> str:
    """What an answer of trouble says, an empty text where it is not JSON or says nothing."""
    with answer.body.open() as stream:
        head = stream.read(4_096)
    try:
        return msgspec.json.decode(head, type=_Message).message
    except msgspec.DecodeError:
        return ""
