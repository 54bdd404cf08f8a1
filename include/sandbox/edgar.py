"""The SEC's bulk files as a part of its stand-in: all companies' facts, one company's, statement data sets.

Promises: a day's file appears in the night of New York and stays until the next; it has an ETag, a date and a length,
and its bytes are given by range where the stand-in is told to honour that, which it is until told otherwise. Never: a
day's bytes differ from one asking to the next, unless a switch says so.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from include.sandbox import absent
from include.sandbox.edgar_bulk import Bulk, document
from include.sandbox.edgar_sets import Sets
from include.sandbox.exchange import (
    Answer,
    Call,
    SwitchError,
    Upstream,
    World,
    http_date,
    instant_of,
    ranged,
    validated,
)

BULK = "/Archives/edgar/daily-index/xbrl/companyfacts.zip"
_SET = re.compile(r"/files/dera/data/financial-statement-data-sets/(?P<year>20[0-9]{2})q(?P<number>[1-4])\.zip")
# So many days after its end a quarter's statement data set is there.
SET_DAYS = 20
_COMPANY = re.compile(r"/api/xbrl/companyfacts/CIK(?P<cik>[0-9]{10})\.json")
NEW_YORK = ZoneInfo("America/New_York")
FIRST_DAY = date(2026, 1, 1)
BUILT = time(3, 0)
# How much smaller than real ones the companies of a small market are.
DIVISOR = 40


@dataclass(frozen=True)
class Plan:
    """What was told: how the file changes, whether ranges are honoured, what is broken in it, when none is built.

    `ranges` is `yes`, `no` or `blind` (a range is given whatever `If-Range` says); `spoilt` are companies by number
    whose member is broken, and how; `stands` keeps the file of an instant. `rebuilt` counts how often the statement
    data sets were built anew, before which they have no dimensions if `is_old`.
    """

    changed: float = 0.05
    new: float = 0.002
    gone: float = 0.001
    divisor: int = DIVISOR
    ranges: str = "yes"
    validators: bool = True
    stands: datetime | None = None
    spoilt: tuple[tuple[int, str], ...] = ()
    rebuilt: int = 0
    is_old: bool = False


class Edgar:
    """The stand-in's part for bulk files."""

    def __init__(self, world: World) -> None:
        self._lock = threading.Lock()
        self._world = world
        self._plan = Plan()

    @property
    def plan(self) -> Plan:
        """What was told."""
        return self._plan

    def bulk(self) -> Bulk:
        """The market whose facts are in the file."""
        plan = self._plan
        return Bulk(self._world.seed, self._world.companies, plan.divisor, plan.changed, plan.new, plan.gone)

    def day_at(self, at: datetime) -> int:
        """The number of the file that lies there at an instant: one more for each business day."""
        at = min(at, self._plan.stands) if self._plan.stands else at
        local = at.astimezone(NEW_YORK)
        last = local.date() if local.time() >= BUILT else local.date() - timedelta(days=1)
        # The file that is built in the morning is of the day before, and none is built after a day without filings.
        days = range((last - FIRST_DAY).days)
        return sum((FIRST_DAY + timedelta(days=each)).weekday() < 5 for each in days)

    def built_at(self, day: int) -> datetime:
        """When the file of a number was built."""
        at, number = FIRST_DAY, 0
        while number < day:
            number += at.weekday() < 5
            at += timedelta(days=1)
        return datetime.combine(at, BUILT, NEW_YORK).astimezone(UTC)

    def answer(self, call: Call) -> Answer | None:
        """A bulk file or a company's document; None where something else is asked for."""
        path = call.plain_path
        if path == BULK:
            return self._archive(call)
        if found := _SET.fullmatch(path):
            return self._set(call, int(found["year"]), int(found["number"]))
        if asked := _COMPANY.fullmatch(path):
            day = self.day_at(call.at)
            for company in self.bulk().on(day):
                if company.cik == int(asked["cik"]):
                    return validated(call, document(company), "application/json", self.built_at(day))
            return absent.no_such_key(call)
        return None

    def sets(self) -> Sets:
        """The statement data sets as they are built now."""
        plan = self._plan
        return Sets(self._world.seed, self._world.companies, plan.rebuilt, has_segments=not plan.is_old)

    def _set(self, call: Call, year: int, number: int) -> Answer:
        """A quarter's statement data set, refused as long as it is not there."""
        end = date(year + number // 4, 3 * number % 12 + 1, 1) + timedelta(days=SET_DAYS - 1)
        there = datetime.combine(end, BUILT, NEW_YORK)
        if call.at < there or (year, number) < (2009, 1):
            return absent.access_denied(call)
        body = self.sets().archive(year, number)
        return self._zip(call, body, f'"{len(body):x}-{self._plan.rebuilt:x}"', there.astimezone(UTC))

    def _archive(self, call: Call) -> Answer:
        plan, day = self._plan, self.day_at(call.at)
        body = _built(self.bulk(), day, plan.spoilt)
        return self._zip(call, body, f'"{len(body):x}-{day:x}-{len(plan.spoilt):x}"', self.built_at(day))

    def _zip(self, call: Call, body: bytes, tag: str, built_at: datetime) -> Answer:
        """An archive, with ranges and validators as told."""
        plan = self._plan
        headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/zip"),)
        if plan.validators:
            headers += (("ETag", tag), ("Last-Modified", http_date(built_at)))
            if call.headers.get("if-none-match") == tag:
                return Answer(304, b"", headers)
        if plan.ranges == "no":
            return Answer(200, body, headers)
        condition = call.headers.get("if-range")
        if condition is not None and condition not in dict(headers).values() and plan.ranges == "yes":
            return Answer(200, body, (("Accept-Ranges", "bytes"), *headers))
        return ranged(call, body, *headers)

    # --- switches

    def switch(self, order: Mapping[str, Any]) -> Mapping[str, Any]:
        """Change the plan; see `SWITCHES` for the words.

        Raises:
            SwitchError: the order cannot be read.
        """
        word = str(order.get("switch", ""))
        if word not in SWITCHES:
            raise SwitchError(f"EDGAR's bulk files have no switch {word!r}; they have {', '.join(sorted(SWITCHES))}")
        with self._lock:
            self._plan = SWITCHES[word](self._plan, order)
        return self.view()

    def reset(self) -> None:
        """Forget all switches."""
        with self._lock:
            self._plan = Plan()

    def view(self) -> dict[str, Any]:
        """The plan, for reading."""
        plan = self._plan
        return {
            "changed": plan.changed,
            "new": plan.new,
            "gone": plan.gone,
            "divisor": plan.divisor,
            "ranges": plan.ranges,
            "validators": plan.validators,
            "stands": plan.stands.isoformat() if plan.stands else None,
            "spoilt": [list(each) for each in plan.spoilt],
            "rebuilt": plan.rebuilt,
            "is_old": plan.is_old,
        }


@lru_cache(maxsize=6)
def _built(bulk: Bulk, day: int, spoilt: tuple[tuple[int, str], ...]) -> bytes:
    from include.sandbox.edgar_bulk import packed

    how = {f"CIK{cik:010d}.json": kind for cik, kind in spoilt}
    members = [
        (BAD_NAME, body) if how.get(name) == "name" else (name, _DAMAGES[how[name]](body) if name in how else body)
        for name, body in bulk.members(day)
    ]
    return packed(iter(members))


BAD_NAME = "../../CIK0000000001.json"
_DAMAGES: Mapping[str, Callable[[bytes], bytes]] = {
    "json": lambda body: body[: len(body) // 2],
    "cik": lambda body: b'{"cik":1,"entityName":"Somebody else","facts":{}}',
    "name": lambda body: body,
}


def _share(order: Mapping[str, Any], name: str, usual: float) -> float:
    value = order.get(name, usual)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise SwitchError(f'"{name}" is a share between 0 and 1, not {value!r}')
    return float(value)


def _days(plan: Plan, order: Mapping[str, Any]) -> Plan:
    divisor = order.get("divisor", plan.divisor)
    if isinstance(divisor, bool) or not isinstance(divisor, int) or divisor < 1:
        raise SwitchError(f'"divisor" is a whole number from 1 on, not {divisor!r}')
    changed, new, gone = (_share(order, name, getattr(plan, name)) for name in ("changed", "new", "gone"))
    return replace(plan, changed=changed, new=new, gone=gone, divisor=divisor)


def _ranges(plan: Plan, order: Mapping[str, Any]) -> Plan:
    how = order.get("how")
    if how not in ("yes", "no", "blind"):
        raise SwitchError(f'"how" is yes, no or blind, not {how!r}')
    return replace(plan, ranges=str(how), validators=bool(order.get("validators", True)))


def _spoil(plan: Plan, order: Mapping[str, Any]) -> Plan:
    cik, how = order.get("cik"), order.get("how")
    if not isinstance(cik, int) or how not in _DAMAGES:
        raise SwitchError(f'"cik" is a number and "how" one of {", ".join(_DAMAGES)}')
    return replace(plan, spoilt=(*plan.spoilt, (cik, str(how))))


def _rebuild(plan: Plan, order: Mapping[str, Any]) -> Plan:
    is_old = bool(order.get("old", False))
    return replace(plan, rebuilt=plan.rebuilt + (not is_old), is_old=is_old)


def _stand(plan: Plan, order: Mapping[str, Any]) -> Plan:
    at = order.get("at")
    return replace(plan, stands=None if at is None else instant_of(at, '"at"'))


# days: how a day changes the file, and how small its companies are. ranges: whether they are honoured, and validators
# given. spoil: a company's member; mend: all of them. stand: no newer file than that of an instant. rebuild: all
# statement data sets anew, or as they were of old.
SWITCHES: Mapping[str, Callable[[Plan, Mapping[str, Any]], Plan]] = {
    "days": _days,
    "ranges": _ranges,
    "spoil": _spoil,
    "mend": lambda plan, order: replace(plan, spoilt=()),
    "stand": _stand,
    "rebuild": _rebuild,
}


@lru_cache(maxsize=16)
def of(world: World) -> Edgar:
    """The one stand-in of a world: the SEC's hosts are played by another, which hands these requests on."""
    return Edgar(world)


def upstream(world: World) -> Upstream:
    """The switches of the bulk files; their addresses are the SEC's."""
    edgar = of(world)
    return Upstream(
        name="edgar",
        hosts=(),
        answer=lambda call: edgar.answer(call) or absent.not_found(call),
        absent=absent.not_found,
        kind=lambda call: "bulk",
        switch=edgar.switch,
        view=edgar.view,
        reset=edgar.reset,
    )
