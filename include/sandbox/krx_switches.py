"""The switches of KRX's stand-in: what happens on the exchange, and how its interface behaves, in words.

Promises: an order that cannot be read changes nothing and is answered with what would do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

from include.sandbox.exchange import SwitchError, instant_of
from include.sandbox.krx_forms import SERVICES
from include.sandbox.krx_market import MARKETS, Events, Issue, Market

Place = tuple[date, str]


@dataclass(frozen=True)
class House:
    """How the interface is set: what it refuses, when it publishes what, and what it shows in place of it."""

    key: str | None = None
    refused: frozenset[str] = frozenset()
    refuses_with_200: bool = False
    quota: int | None = None
    published: Mapping[Place, datetime | None] = field(default_factory=dict)
    partial: Mapping[Place, tuple[tuple[datetime, int], ...]] = field(default_factory=dict)
    revised: Mapping[Place, tuple[tuple[datetime, str, int], ...]] = field(default_factory=dict)
    placeholders: frozenset[date] = frozenset()
    answers_with: Mapping[date, date] = field(default_factory=dict)


def _day(order: Mapping[str, Any], name: str = "day") -> date:
    try:
        return date.fromisoformat(str(order.get(name)))
    except ValueError:
        raise SwitchError(f'"{name}" must be a date such as 2026-09-15, not {order.get(name)!r}') from None


def _code(order: Mapping[str, Any]) -> str:
    code = order.get("code")
    if not isinstance(code, str) or len(code) != 6:
        raise SwitchError(f'"code" must be one of six characters such as 005930, not {code!r}')
    return code


def _service(order: Mapping[str, Any]) -> list[str]:
    service = order.get("service", "*")
    if service == "*":
        return list(SERVICES)
    if service not in SERVICES:
        raise SwitchError(f'"service" is one of {", ".join(SERVICES)}, or "*" for all, not {service!r}')
    return [str(service)]


def _places(order: Mapping[str, Any]) -> list[Place]:
    return [(_day(order), service) for service in _service(order)]


def _market(order: Mapping[str, Any]) -> str:
    if order.get("market") not in MARKETS:
        raise SwitchError(f'"market" is one of {", ".join(MARKETS)}, not {order.get("market")!r}')
    return str(order["market"])


# --- the exchange


def _close(market: Market, order: Mapping[str, Any]) -> Events:
    day, events = _day(order), market.events
    return replace(events, closed=events.closed | {day}, opened=events.opened - {day})


def _open(market: Market, order: Mapping[str, Any]) -> Events:
    day, events = _day(order), market.events
    return replace(events, opened=events.opened | {day}, closed=events.closed - {day})


def _move(market: Market, order: Mapping[str, Any]) -> Events:
    code, events = _code(order), market.events
    moved = (*events.moves.get(code, ()), (_day(order), _market(order)))
    return replace(events, moves={**events.moves, code: moved})


def _end(market: Market, order: Mapping[str, Any]) -> Events:
    return replace(market.events, ends={**market.events.ends, _code(order): _day(order, "last")})


def _list(market: Market, order: Mapping[str, Any]) -> Events:
    name = str(order.get("name", "새로상장"))
    issue = Issue(_code(order), name, _market(order), 10_000, 5_000_000, _day(order))
    return replace(market.events, listings=(*market.events.listings, issue))


def _split(market: Market, order: Mapping[str, Any]) -> Events:
    ratio, code, events = order.get("ratio"), _code(order), market.events
    if not isinstance(ratio, int) or ratio < 2:
        raise SwitchError('"ratio" is how many new shares there are for one, e.g. 50')
    return replace(events, splits={**events.splits, code: (*events.splits.get(code, ()), (_day(order), ratio))})


def _halt(market: Market, order: Mapping[str, Any]) -> Events:
    code, events = _code(order), market.events
    span = (_day(order, "first"), _day(order, "last"))
    return replace(events, halts={**events.halts, code: (*events.halts.get(code, ()), span)})


def _rename(market: Market, order: Mapping[str, Any]) -> Events:
    code, events = _code(order), market.events
    named = (_day(order), str(order.get("to", "다른이름")))
    return replace(events, names={**events.names, code: (*events.names.get(code, ()), named)})


# --- the interface


def _key(house: House, order: Mapping[str, Any]) -> House:
    state = order.get("is")
    if state not in (None, "good", "unknown"):
        raise SwitchError('"is" says what is said of any key: good or unknown')
    return replace(house, key=None if state == "good" else state)


def _refuse(house: House, order: Mapping[str, Any]) -> House:
    services = frozenset(_service(order))
    refused = house.refused | services if order.get("is", True) else house.refused - services
    return replace(house, refused=refused, refuses_with_200=order.get("status", 401) == 200)


def _quota(house: House, order: Mapping[str, Any]) -> House:
    value = order.get("n")
    if value is not None and (not isinstance(value, int) or value < 1):
        raise SwitchError('"n" is a whole number above zero, or null for the usual one')
    return replace(house, quota=value)


def _delay(house: House, order: Mapping[str, Any]) -> House:
    until = order.get("until")
    at = None if until is None else instant_of(until, '"until"')
    return replace(house, published={**house.published, **dict.fromkeys(_places(order), at)})


def _partial(house: House, order: Mapping[str, Any]) -> House:
    share = order.get("percent", 50)
    if not isinstance(share, int) or not 0 < share < 100:
        raise SwitchError('"percent" is how much of the rows is there, 1 to 99')
    until = instant_of(order.get("until"), '"until"')
    return replace(house, partial={**house.partial, **dict.fromkeys(_places(order), ((until, share),))})


def _revise(house: House, order: Mapping[str, Any]) -> House:
    change = (instant_of(order.get("at"), '"at"'), str(order.get("column", "ACC_TRDVOL")), int(order.get("by", 1)))
    revised = dict(house.revised)
    for place in _places(order):
        revised[place] = (*revised.get(place, ()), change)
    return replace(house, revised=revised)


def _placeholders(house: House, order: Mapping[str, Any]) -> House:
    return replace(house, placeholders=house.placeholders | {_day(order)})


def _other_day(house: House, order: Mapping[str, Any]) -> House:
    return replace(house, answers_with={**house.answers_with, _day(order): _day(order, "with")})


# close, open: the day is not what the calendar says. move: to another market. end: the last day. list, split, halt,
# rename: what happens to an issue on a day.
EVENT_SWITCHES: Mapping[str, Callable[[Market, Mapping[str, Any]], Events]] = {
    "close": _close,
    "open": _open,
    "move": _move,
    "end": _end,
    "list": _list,
    "split": _split,
    "halt": _halt,
    "rename": _rename,
}
# key: what is said of any key. refuse: a service is not approved. quota: calls of a day. delay: a session appears
# later, or never. partial: with fewer rows until an instant. revise: the first row's value changes. placeholders: a
# closed day shows every issue without values. other_day: a day is answered with another one's rows.
HOUSE_SWITCHES: Mapping[str, Callable[[House, Mapping[str, Any]], House]] = {
    "key": _key,
    "refuse": _refuse,
    "quota": _quota,
    "delay": _delay,
    "partial": _partial,
    "revise": _revise,
    "placeholders": _placeholders,
    "other_day": _other_day,
}
