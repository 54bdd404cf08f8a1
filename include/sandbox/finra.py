"""FINRA's CDN: the daily short-sale files of cdn.finra.org.

Promises: a file is there from its publication instant on (17:17 to 17:18 in New York on the session's day,
by the simulated clock) and otherwise refused as the object store refuses it, without a reason. Never: a
closed day, a future day, or a day before a facility's history has a file.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from include.calendars import calendar
from include.sandbox import absent
from include.sandbox.exchange import Answer, Call, SwitchError, Upstream, World, instant_of, validated
from include.sandbox.finra_damage import KINDS, drifted
from include.sandbox.finra_files import CONSOLIDATED, FACILITIES, FIRST, HISTORY, Edition, Market

HOST = "cdn.finra.org"
NEW_YORK = ZoneInfo("America/New_York")
PATH = re.compile(r"/equity/regsho/daily/(?P<prefix>[A-Z]{4})shvol(?P<day>[0-9]{8})\.txt")
PREFIXES = (CONSOLIDATED, *FACILITIES)
PUBLISHED_FROM = time(17, 17)

Key = tuple[date, str]


@dataclass(frozen=True)
class Plan:
    """What the switches said, by day and facility.

    `published` moves a publication (None: never), `revised` are later editions with their instants in order,
    `damaged` names a kind of damage, `closed` and `opened` are days on which the calendar is wrong.
    """

    closed: frozenset[date] = frozenset()
    opened: frozenset[date] = frozenset()
    published: Mapping[Key, datetime | None] = field(default_factory=dict)
    revised: Mapping[Key, tuple[tuple[datetime, Edition], ...]] = field(default_factory=dict)
    damaged: Mapping[Key, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Shelf:
    """The generated market and the plan of its publication: pure questions about any instant."""

    market: Market
    plan: Plan = Plan()

    def published_at(self, day: date, prefix: str) -> datetime | None:
        """When the first edition of a file appears, or None where it never does."""
        if prefix not in HISTORY or day < HISTORY[prefix] or day in self.plan.closed:
            return None
        if day not in self.plan.opened and not calendar("XNYS").is_session(day):
            return None
        if (day, prefix) in self.plan.published:
            return self.plan.published[(day, prefix)]
        second = Random(f"{self.market.seed}/{day}/{prefix}/published").randrange(0, 60)
        return datetime.combine(day, PUBLISHED_FROM, NEW_YORK) + timedelta(seconds=second)

    def file(self, day: date, prefix: str, at: datetime) -> tuple[bytes, datetime] | None:
        """The bytes that lie there at an instant and since when, or None while nothing does."""
        # Asked first: a calendar knows nothing of days that are years ahead.
        if day > at.astimezone(NEW_YORK).date():
            return None
        since = self.published_at(day, prefix)
        if since is None or at < since:
            return None
        edition = FIRST
        for instant, later in self.plan.revised.get((day, prefix), ()):
            if since <= instant <= at:
                since, edition = instant, later
        body = self.market.file(day, prefix, edition)
        damage = self.plan.damaged.get((day, prefix))
        return (KINDS[damage](body) if damage else body), since


class Finra:
    """The stand-in: a shelf and the switches that change its plan."""

    def __init__(self, world: World) -> None:
        self._lock = threading.Lock()
        self._shelf = Shelf(Market(world.seed, world.companies))

    def answer(self, call: Call) -> Answer:
        """A file with its validators, 304, or the store's refusal."""
        asked = PATH.fullmatch(call.path)
        if asked is None or call.method not in ("GET", "HEAD"):
            return absent.access_denied(call)
        try:
            day = date(int(asked["day"][:4]), int(asked["day"][4:6]), int(asked["day"][6:]))
        except ValueError:
            return absent.access_denied(call)
        found = self._shelf.file(day, asked["prefix"], call.at)
        if found is None:
            return absent.access_denied(call)
        body, since = found
        if call.drift:
            body = drifted(body, call.drift)
        return validated(call, body, "text/plain", since)

    def switch(self, order: Mapping[str, Any]) -> Mapping[str, Any]:
        """Change the plan; see `SWITCHES` for the words.

        Raises:
            SwitchError: the order cannot be read.
        """
        word = str(order.get("switch", ""))
        if word not in SWITCHES:
            raise SwitchError(f"FINRA has no switch {word!r}; it has {', '.join(sorted(SWITCHES))}")
        with self._lock:
            self._shelf = replace(self._shelf, plan=SWITCHES[word](self._shelf, order))
        return self.view()

    def reset(self) -> None:
        """Forget all switches."""
        with self._lock:
            self._shelf = replace(self._shelf, plan=Plan())

    def view(self) -> dict[str, Any]:
        """The plan, for reading."""
        plan = self._shelf.plan
        return {
            "closed": sorted(day.isoformat() for day in plan.closed),
            "opened": sorted(day.isoformat() for day in plan.opened),
            "published": {_name(key): at.isoformat() if at else None for key, at in plan.published.items()},
            "revised": {
                _name(key): [
                    {
                        "at": at.isoformat(),
                        "revision": edition.revision,
                        "withdrawn": sorted(edition.withdrawn),
                    }
                    for at, edition in editions
                ]
                for key, editions in plan.revised.items()
            },
            "damaged": {_name(key): kind for key, kind in plan.damaged.items()},
        }


def _name(key: Key) -> str:
    return f"{key[1]} {key[0].isoformat()}"


def _day(order: Mapping[str, Any]) -> date:
    try:
        return date.fromisoformat(str(order.get("day")))
    except ValueError:
        raise SwitchError(f'"day" must be a date such as 2026-09-15, not {order.get("day")!r}') from None


def _keys(order: Mapping[str, Any]) -> list[Key]:
    """The files an order is for: of one facility, or of all (the consolidated file stays their sum)."""
    facility = order.get("facility", "*")
    if facility != "*" and facility not in PREFIXES:
        raise SwitchError(f'"facility" is one of {", ".join(PREFIXES)}, or "*" for all, not {facility!r}')
    return [(_day(order), prefix) for prefix in (PREFIXES if facility == "*" else (facility,))]


def _delay(shelf: Shelf, order: Mapping[str, Any]) -> Plan:
    published = dict(shelf.plan.published)
    for key in _keys(order):
        if "until" in order:
            at = None if order["until"] is None else instant_of(order["until"], '"until"')
        elif isinstance(order.get("minutes"), int | float):
            usual = datetime.combine(key[0], PUBLISHED_FROM, NEW_YORK)
            at = usual + timedelta(minutes=order["minutes"])
        else:
            raise SwitchError('a delay needs "minutes" (a number) or "until" (an ISO instant; null: never)')
        published[key] = at
    return replace(shelf.plan, published=published)


def _revise(shelf: Shelf, order: Mapping[str, Any]) -> Plan:
    at = instant_of(order.get("at"), '"at"')
    revision = order.get("revision", 1)
    if not isinstance(revision, int) or revision < 0:
        raise SwitchError('"revision" is a whole number; 0 is the first edition again')
    withdraw = order.get("withdraw", [])
    if isinstance(withdraw, int):
        withdrawn = shelf.market.some_symbols(_day(order), withdraw)
    elif isinstance(withdraw, list):
        withdrawn = frozenset(str(symbol) for symbol in withdraw)
    else:
        raise SwitchError('"withdraw" is a number of rows or a list of symbols')
    revised = dict(shelf.plan.revised)
    for key in _keys(order):
        later = (at, Edition(revision, withdrawn))
        revised[key] = tuple(sorted((*revised.get(key, ()), later), key=lambda one: one[0]))
    return replace(shelf.plan, revised=revised)


def _damage(shelf: Shelf, order: Mapping[str, Any]) -> Plan:
    kind = order.get("how")
    if kind is not None and kind not in KINDS:
        raise SwitchError(f'"how" is one of {", ".join(KINDS)}, or null for none, not {kind!r}')
    damaged = {key: held for key, held in shelf.plan.damaged.items() if key not in _keys(order)}
    if kind is not None:
        damaged |= dict.fromkeys(_keys(order), kind)
    return replace(shelf.plan, damaged=damaged)


def _close(shelf: Shelf, order: Mapping[str, Any]) -> Plan:
    day = _day(order)
    return replace(shelf.plan, closed=shelf.plan.closed | {day}, opened=shelf.plan.opened - {day})


def _open(shelf: Shelf, order: Mapping[str, Any]) -> Plan:
    day = _day(order)
    return replace(shelf.plan, opened=shelf.plan.opened | {day}, closed=shelf.plan.closed - {day})


# delay: publish later or never. revise: another edition from an instant on (0 takes the first one back).
# damage: a file wrong in itself. close, open: the day is not what the calendar says.
SWITCHES: Mapping[str, Callable[[Shelf, Mapping[str, Any]], Plan]] = {
    "delay": _delay,
    "revise": _revise,
    "damage": _damage,
    "close": _close,
    "open": _open,
}


def upstream(world: World) -> Upstream:
    """FINRA as a stand-in."""
    finra = Finra(world)
    return Upstream(
        name="finra",
        hosts=(HOST,),
        answer=finra.answer,
        absent=absent.access_denied,
        kind=lambda call: "daily_file" if PATH.fullmatch(call.path) else "other",
        switch=finra.switch,
        view=finra.view,
        reset=finra.reset,
    )
