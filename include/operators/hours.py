"""Schedules in words: in the zone that they are set in, in Seoul and in the upstream's zone.

Promises: the same text in every process, for summer and winter where the clocks differ; a cron expression that has no
plain words is shown as it is. Never: no clock, no connection.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from include.contract import Schedule
from include.schedules import Times

_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NEXT_DAY = {-1: " the day before", 0: "", 1: " the next day"}
_SEOUL = "Asia/Seoul"
_SET = ", as set in config/schedules.yaml"

Clock = tuple[int, int]


def schedule_words(schedule: Schedule) -> str:
    """Say when a stream is collected."""
    return _words(schedule.cron, schedule.timezone, (_SEOUL, schedule.day_zone)) + (_SET if schedule.is_set else "")


def times_words(times: Times) -> str:
    """Say when a job of the system runs."""
    return _words(times.cron, times.timezone, (_SEOUL,)) + (_SET if times.is_set else "")


def _words(cron: str, zone: str, others: Sequence[str]) -> str:
    if " | " in cron:
        return "; ".join(_words(each, zone, others) for each in cron.split(" | "))
    minute, hour, month_day, month, week_day = cron.split()
    days, clocks = _days(week_day), _clocks(minute, hour)
    if month_day != "*" or month != "*" or days is None or clocks is None:
        return f"`{cron}` in {zone}"
    every, between, times = clocks
    if not times:
        return f"{every}, {days}"
    said = between.join(f"{at[0]:02}:{at[1]:02}" for at in times)
    text = f"{every} from {said}" if every else said
    elsewhere = [_elsewhere(zone, other, times, between) for other in dict.fromkeys(others) if other != zone]
    return f"{text} {_place(zone)}, {days}" + (f" ({'; '.join(elsewhere)})" if elsewhere else "")


def _days(field: str) -> str | None:
    """Say the days of a weekday field; None where it has no plain words."""
    if field == "*":
        return "every day"
    first, dash, last = field.partition("-")
    if dash and first.isdigit() and last.isdigit():
        return f"{_DAYS[int(first)]} to {_DAYS[int(last)]}"
    if all(part.isdigit() for part in field.split(",")):
        return " and ".join(_DAYS[int(part)] for part in field.split(","))
    return None


def _clocks(minute: str, hour: str) -> tuple[str, str, list[Clock]] | None:
    """Return how often something runs within a span, what stands between its times, and the times."""
    step = int(minute[2:]) if minute.startswith("*/") and minute[2:].isdigit() else 0
    if hour == "*" and minute in ("*", "*/1"):
        return "every minute", "", []
    if hour == "*" and step:
        return f"every {step} minutes", "", []
    first, dash, last = hour.partition("-")
    if dash and first.isdigit() and last.isdigit() and (step or minute.isdigit()):
        start, end = (0, 60 - step) if step else (int(minute), int(minute))
        return f"every {step} minutes" if step else "every hour", " to ", [(int(first), start), (int(last), end)]
    if minute.isdigit() and all(part.isdigit() for part in hour.split(",")):
        return "", " and ", [(int(part), int(minute)) for part in hour.split(",")]
    return None


def _elsewhere(zone: str, other: str, times: Sequence[Clock], between: str) -> str:
    summer, winter = (between.join(_there(zone, other, month, at) for at in times) for month in (7, 1))
    if summer == winter:
        return f"{summer} in {_place(other)}"
    return f"{summer} in {_place(other)} in summer, {winter} in winter"


def _there(zone: str, other: str, month: int, at: Clock) -> str:
    local = datetime(2026, month, 15, at[0], at[1], tzinfo=ZoneInfo(zone))
    there = local.astimezone(ZoneInfo(other))
    return f"{there:%H:%M}{_NEXT_DAY[(there.date() - local.date()).days]}"


def _place(zone: str) -> str:
    return zone.rpartition("/")[2].replace("_", " ")
