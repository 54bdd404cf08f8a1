"""FRED: the interface of api.stlouisfed.org, with vintages, descriptions, updates, and its ways of saying no.

Promises: answers have the upstream's form to the byte order of their fields; what is asked for ahead of St. Louis, or
over more vintages than it answers for, is refused in its words. Never: something not published by the simulated clock.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any
from xml.sax.saxutils import quoteattr

from include.sandbox import absent
from include.sandbox.exchange import Answer, Call, SwitchError, Upstream, World
from include.sandbox.fred_series import ST_LOUIS
from include.sandbox.fred_shelf import FIRST_DAY, FOREVER, Plan, Shelf
from include.sandbox.fred_switches import HOUSE_SWITCHES, KEYS, SWITCHES, House

HOST = "api.stlouisfed.org"
MOST_VINTAGES = 2_000


class Refusal(Exception):
    """An answer that says no: status and text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Fred:
    """The stand-in: a shelf, and the switches that change its plan."""

    def __init__(self, world: World) -> None:
        self._lock = threading.Lock()
        # A small market has a short history: a year for each 25 companies, and two at least.
        self._shelf = Shelf(world.seed, max(world.companies // 25, 2))
        self._house = House()
        self._arrived: Counter[int] = Counter()

    @property
    def shelf(self) -> Shelf:
        """What is published, for a test that asks beside the interface."""
        return self._shelf

    def answer(self, call: Call) -> Answer:
        """Answer a call in the form that it asks for; XML unless it says otherwise, as the upstream does."""
        params = call.params()
        is_json = params.get("file_type") == "json"
        try:
            self._admit(call, params)
            endpoint = ENDPOINTS.get(call.plain_path)
            if endpoint is None:
                raise Refusal(404, "Not Found")
            document = endpoint(self._shelf, self._house, call.at, params)
        except Refusal as no:
            return _refused(no, is_json=is_json)
        if call.drift:
            document = drifted(document, call.drift)
        return _document(document, is_json=is_json)

    def _admit(self, call: Call, params: Mapping[str, str]) -> None:
        state = self._house.key or (None if params.get("api_key") else "unset")
        if state is not None:
            raise Refusal(400, KEYS[state])
        if self._house.per_second is not None:
            second = int(call.at.timestamp())
            with self._lock:
                self._arrived[second] += 1
                is_over = self._arrived[second] > self._house.per_second
            if is_over:
                raise Refusal(429, "Too Many Requests.  Exceeded Rate Limit")

    def switch(self, order: Mapping[str, Any]) -> Mapping[str, Any]:
        """Change the plan; see `fred_switches` for the words.

        Raises:
            SwitchError: the order cannot be read.
        """
        word = str(order.get("switch", ""))
        with self._lock:
            if word in SWITCHES:
                self._shelf = replace(self._shelf, plan=SWITCHES[word](self._shelf.plan, order))
            elif word in HOUSE_SWITCHES:
                self._house = HOUSE_SWITCHES[word](self._house, order)
            else:
                known = ", ".join(sorted({*SWITCHES, *HOUSE_SWITCHES}))
                raise SwitchError(f"FRED has no switch {word!r}; it has {known}")
        return self.view()

    def reset(self) -> None:
        """Forget all switches."""
        with self._lock:
            self._shelf, self._house = replace(self._shelf, plan=Plan()), House()

    def view(self) -> dict[str, Any]:
        """The plan, for reading."""
        plan, house = self._shelf.plan, self._house
        return {
            "unknown": sorted(plan.unknown),
            "withheld": sorted(plan.withheld),
            "without_vintages": sorted(plan.without_vintages),
            "moved": {f"{series} {day}": at.isoformat() if at else None for (series, day), at in plan.moved.items()},
            "revised": {series: len(changes) for series, changes in plan.revised.items()},
            "described": {series: len(changes) for series, changes in plan.described.items()},
            "ended": {series: day.isoformat() for series, (day, _) in plan.ended.items()},
            "key": house.key,
            "page": house.page,
            "per_second": house.per_second,
        }


# --- endpoints ----------------------------------------------------------------------------------------


def _series(shelf: Shelf, params: Mapping[str, str]) -> str:
    series = params.get("series_id", "")
    if not series:
        raise Refusal(400, "Bad Request.  Variable series_id is not set.")
    if not shelf.exists(series):
        raise Refusal(400, "Bad Request.  The series does not exist.")
    return series


def _day(params: Mapping[str, str], name: str, default: date) -> date:
    text = params.get(name)
    if text is None:
        return default
    try:
        if len(text) != 10:
            raise ValueError
        return date.fromisoformat(text)
    except ValueError:
        raise Refusal(
            400, f"Bad Request.  The value for variable {name} is not a valid date in the form YYYY-MM-DD."
        ) from None


def _number(params: Mapping[str, str], name: str, default: int, most: int | None = None) -> int:
    text = params.get(name, str(default))
    if not text.isdigit() or (most is not None and not 1 <= int(text) <= most):
        span = f"between 1 and {most}" if most is not None else "0 or more"
        raise Refusal(400, f"Bad Request.  The value for variable {name} is not {span}.")
    return int(text)


def _window(at: datetime, params: Mapping[str, str], whole: bool = False) -> tuple[date, date]:
    """The real-time period of a call: today in St. Louis where it names none."""
    today = at.astimezone(ST_LOUIS).date()
    start = _day(params, "realtime_start", FIRST_DAY if whole else today)
    end = _day(params, "realtime_end", FOREVER if whole else today)
    for name, day in (("realtime_start", start), ("realtime_end", end)):
        if today < day < FOREVER:
            raise Refusal(
                400,
                f"Bad Request.  Variable {name} can not be after today's date ({today}) unless it's equal to the "
                f"real-time max date {FOREVER}.",
            )
    if start > end:
        raise Refusal(400, "Bad Request.  Variable realtime_start can not be after variable realtime_end.")
    if start < FIRST_DAY:
        raise Refusal(400, f"Bad Request.  Variable realtime_start can not be before {FIRST_DAY}.")
    return start, end


def _check_kept(shelf: Shelf, series: str, at: datetime, start: date, end: date) -> None:
    """Refuse a real-time period of which ALFRED keeps nothing."""
    if start == end == at.astimezone(ST_LOUIS).date():
        return
    vintages = shelf.vintages(series, at)
    if series in shelf.plan.without_vintages or not vintages or end < vintages[0]:
        raise Refusal(
            400,
            "Bad Request.  The series does not exist in ALFRED but may exist in FRED.  Try setting realtime_start and "
            "realtime_end to today's date.",
        )


def _check_count(shelf: Shelf, series: str, at: datetime, start: date, end: date) -> None:
    """Refuse a real-time period with too many vintages."""
    count = sum(start <= day <= end for day in shelf.vintages(series, at))
    if count > MOST_VINTAGES:
        raise Refusal(
            400,
            f"Bad Request.  There are {count} vintage dates in the specified real-time period: {start} to {end}.  This "
            f"exceeds the maximum number of vintage dates allowed for this file type ({MOST_VINTAGES}).",
        )


def _describe(shelf: Shelf, house: House, at: datetime, params: Mapping[str, str]) -> dict[str, Any]:
    series = _series(shelf, params)
    start, end = _window(at, params)
    _check_kept(shelf, series, at, start, end)
    found = shelf.descriptions(series, at, start, end)
    return {"realtime_start": f"{start}", "realtime_end": f"{end}", "seriess": found}


def _observe(shelf: Shelf, house: House, at: datetime, params: Mapping[str, str]) -> dict[str, Any]:
    series = _series(shelf, params)
    if series in shelf.plan.withheld:
        raise Refusal(404, "Not Found.  The series data is not available via the API.")
    start, end = _window(at, params)
    _check_kept(shelf, series, at, start, end)
    _check_count(shelf, series, at, start, end)
    if params.get("units", "lin") != "lin" or params.get("output_type", "1") != "1":
        raise Refusal(400, "Bad Request.  The sandbox gives units=lin and output_type=1 alone.")
    first, last = _day(params, "observation_start", date(1600, 1, 1)), _day(params, "observation_end", FOREVER)
    rows = [row for row in shelf.rows(series, at, start, end) if first <= row[2] <= last]
    if params.get("sort_order") == "desc":
        rows.reverse()
    limit, offset = _number(params, "limit", 100_000, 100_000), _number(params, "offset", 0)
    page = rows[offset : offset + min(limit, house.page or limit)]
    return {
        "realtime_start": f"{start}",
        "realtime_end": f"{end}",
        "observation_start": f"{first}",
        "observation_end": f"{last}",
        "units": "lin",
        "output_type": 1,
        "file_type": params.get("file_type", "xml"),
        "order_by": "observation_date",
        "sort_order": params.get("sort_order", "asc"),
        "count": len(rows),
        "offset": offset,
        "limit": limit,
        "observations": [
            {"realtime_start": f"{since}", "realtime_end": f"{until}", "date": f"{day}", "value": text}
            for since, until, day, text in page
        ],
    }


def _vintages(shelf: Shelf, house: House, at: datetime, params: Mapping[str, str]) -> dict[str, Any]:
    series = _series(shelf, params)
    start, end = _window(at, params, whole=True)
    if series in shelf.plan.without_vintages:
        _check_kept(shelf, series, at, start, end)
    found = [day for day in shelf.vintages(series, at) if start <= day <= end]
    limit, offset = _number(params, "limit", 10_000, 10_000), _number(params, "offset", 0)
    return {
        "realtime_start": f"{start}",
        "realtime_end": f"{end}",
        "order_by": "vintage_date",
        "sort_order": "asc",
        "count": len(found),
        "offset": offset,
        "limit": limit,
        "vintage_dates": [f"{day}" for day in found[offset : offset + limit]],
    }


def _updates(shelf: Shelf, house: House, at: datetime, params: Mapping[str, str]) -> dict[str, Any]:
    given = [params.get("start_time"), params.get("end_time")]
    if (given[0] is None) != (given[1] is None):
        raise Refusal(400, "Bad Request.  Variables start_time and end_time must be set together.")
    start, end = at - timedelta(days=14), at
    if given[0] is not None and given[1] is not None:
        start, end = (max(start, _minute(given[0])), min(end, _minute(given[1])))
    found = shelf.updated(at, start, end)
    limit, offset = _number(params, "limit", 1_000, 1_000), _number(params, "offset", 0)
    today = at.astimezone(ST_LOUIS).date()
    return {
        "realtime_start": f"{today}",
        "realtime_end": f"{today}",
        "filter_variable": "geography",
        "filter_value": params.get("filter_value", "all"),
        "order_by": "last_updated",
        "sort_order": "desc",
        "count": len(found),
        "offset": offset,
        "limit": limit,
        "seriess": [shelf.descriptions(series, at, today, today)[-1] for _, series in found[offset : offset + limit]],
    }


def _minute(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y%m%d%H%M").replace(tzinfo=ST_LOUIS)
    except ValueError:
        raise Refusal(400, "Bad Request.  The times are not in the form YYYYMMDDHhmm.") from None


ENDPOINTS: Mapping[str, Callable[[Shelf, House, datetime, Mapping[str, str]], dict[str, Any]]] = {
    "/fred/series": _describe,
    "/fred/series/observations": _observe,
    "/fred/series/vintagedates": _vintages,
    "/fred/series/updates": _updates,
}


# --- forms --------------------------------------------------------------------------------------------


def _refused(no: Refusal, *, is_json: bool) -> Answer:
    if is_json:
        return _document({"error_code": no.status, "error_message": str(no)}, is_json=True, status=no.status)
    body = f'<?xml version="1.0" encoding="utf-8" ?>\n<error code="{no.status}" message={quoteattr(str(no))} />\n'
    return Answer(no.status, body.encode(), (("Content-Type", "text/xml; charset=UTF-8"),))


def _document(document: Mapping[str, Any], *, is_json: bool, status: int = 200) -> Answer:
    if is_json:
        # The upstream escapes slashes and everything beyond ASCII.
        body = json.dumps(document, separators=(",", ":")).replace("/", "\\/")
        return Answer(status, body.encode(), (("Content-Type", "application/json; charset=UTF-8"),))
    name, items = next((key, value) for key, value in document.items() if isinstance(value, list))
    head = "".join(f" {key}={quoteattr(str(value))}" for key, value in document.items() if key != name)
    lines = [f"  <{name.removesuffix('s')}{_attributes(item)} />" for item in items]
    body = "\n".join(['<?xml version="1.0" encoding="utf-8" ?>', f"<{name}{head}>", *lines, f"</{name}>", ""])
    return Answer(status, body.encode(), (("Content-Type", "text/xml; charset=UTF-8"),))


def _attributes(item: Any) -> str:
    values = item if isinstance(item, dict) else {"date": item}
    return "".join(f" {key}={quoteattr(str(value))}" for key, value in values.items())


def drifted(document: dict[str, Any], drift: str) -> dict[str, Any]:
    """The document with another schema: a field of its items renamed, missing, or one more."""
    name = next((key for key in ("observations", "seriess") if key in document), None)
    if name is None:
        return document
    field = "value" if name == "observations" else "title"
    return {**document, name: [_drifted(item, field, drift) for item in document[name]]}


def _drifted(item: Mapping[str, Any], field: str, drift: str) -> dict[str, Any]:
    if drift == "extra":
        return {**item, "release_id": 53}
    kept = {key: value for key, value in item.items() if key != field}
    return {**kept, f"{field}_text": item[field]} if drift == "renamed" else kept


def _kind(call: Call) -> str:
    return call.plain_path.rpartition("/")[2] if call.plain_path in ENDPOINTS else "other"


def upstream(world: World) -> Upstream:
    """FRED as a stand-in."""
    fred = Fred(world)
    return Upstream(
        name="fred",
        hosts=(HOST,),
        answer=fred.answer,
        absent=absent.fred,
        kind=_kind,
        switch=fred.switch,
        view=fred.view,
        reset=fred.reset,
        secret_params=frozenset({"api_key"}),
    )
