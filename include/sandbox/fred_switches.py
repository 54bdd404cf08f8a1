"""The switches of FRED's stand-in: what may be changed of its series and of its interface, in words.

Promises: an order that cannot be read changes nothing and is answered with what would do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from typing import Any

from include.sandbox.exchange import SwitchError, instant_of
from include.sandbox.fred_series import ST_LOUIS
from include.sandbox.fred_shelf import GONE, Plan

READ = "  Read https://fred.stlouisfed.org/docs/api/api_key.html for more information."
KEYS = {
    "unset": f"Bad Request.  Variable api_key is not set.{READ}",
    "malformed": "Bad Request.  The value for variable api_key is not a 32 character alpha-numeric lower-case string."
    f"{READ}",
    "unknown": f"Bad Request.  The value for variable api_key is not registered.{READ}",
}


@dataclass(frozen=True)
class House:
    """How the interface itself is set: what it says of any key, rows of a page at most, requests of a second."""

    key: str | None = None
    page: int | None = None
    per_second: int | None = None


def _named(order: Mapping[str, Any]) -> str:
    series = order.get("series")
    if not isinstance(series, str) or not series:
        raise SwitchError('"series" names one, e.g. "GDP"')
    return series


def _date(order: Mapping[str, Any], name: str) -> date:
    try:
        return date.fromisoformat(str(order.get(name)))
    except ValueError:
        raise SwitchError(f'"{name}" must be a date such as 2026-09-15, not {order.get(name)!r}') from None


def _listed(field: str) -> Callable[[Plan, Mapping[str, Any]], Plan]:
    def change(plan: Plan, order: Mapping[str, Any]) -> Plan:
        held: frozenset[str] = getattr(plan, field)
        series = {_named(order)}
        return replace(plan, **{field: held | series if order.get("is", True) else held - series})  # type: ignore[arg-type]

    return change


def _delay(plan: Plan, order: Mapping[str, Any]) -> Plan:
    until = order.get("until")
    at = None if until is None else instant_of(until, '"until"')
    return replace(plan, moved={**plan.moved, (_named(order), _date(order, "day")): at})


def _revise(plan: Plan, order: Mapping[str, Any]) -> Plan:
    series, value = _named(order), order.get("value")
    if value is not None and not isinstance(value, str):
        raise SwitchError('"value" is a text such as "3.8" or ".", or null: published no more')
    change = (instant_of(order.get("at"), '"at"'), _date(order, "date"), GONE if value is None else value)
    return replace(plan, revised={**plan.revised, series: (*plan.revised.get(series, ()), change)})


def _redescribe(plan: Plan, order: Mapping[str, Any]) -> Plan:
    series, at = _named(order), instant_of(order.get("at"), '"at"')
    words = ("title", "units", "units_short", "notes", "frequency", "frequency_short")
    changed = {name: str(order[name]) for name in words if name in order}
    if not changed:
        raise SwitchError(f"a description is changed by one of {', '.join(words)}")
    return replace(plan, described={**plan.described, series: (*plan.described.get(series, ()), (at, changed))})


def _end(plan: Plan, order: Mapping[str, Any]) -> Plan:
    last = _date(order, "last")
    at = instant_of(order["at"], '"at"') if "at" in order else datetime.combine(last, time(12), ST_LOUIS)
    return replace(plan, ended={**plan.ended, _named(order): (last, at)})


def _set_key(house: House, order: Mapping[str, Any]) -> House:
    state = order.get("is")
    if state not in (None, "good", *KEYS):
        raise SwitchError(f'"is" says what is said of any key: good, {", ".join(KEYS)}')
    return replace(house, key=None if state == "good" else state)


def _set_number(field: str) -> Callable[[House, Mapping[str, Any]], House]:
    def change(house: House, order: Mapping[str, Any]) -> House:
        value = order.get("n")
        if value is not None and (not isinstance(value, int) or value < 1):
            raise SwitchError('"n" is a whole number above zero, or null for none')
        return replace(house, **{field: value})  # type: ignore[arg-type]

    return change


# unknown, withhold, no_vintages: of a series. delay: what a day published comes later, or never. revise: a value
# becomes another, "." or nothing. describe, end: the description changes, the series is discontinued.
SWITCHES: Mapping[str, Callable[[Plan, Mapping[str, Any]], Plan]] = {
    "unknown": _listed("unknown"),
    "withhold": _listed("withheld"),
    "no_vintages": _listed("without_vintages"),
    "delay": _delay,
    "revise": _revise,
    "describe": _redescribe,
    "end": _end,
}
# key: what is said of any key. page: rows of a page at most. limit: requests of a second at most.
HOUSE_SWITCHES: Mapping[str, Callable[[House, Mapping[str, Any]], House]] = {
    "key": _set_key,
    "page": _set_number("page"),
    "limit": _set_number("per_second"),
}
