"""ECOS: the interface of ecos.bok.or.kr, in which everything stands in the path and every answer has status 200.

Promises: answers have the upstream's form; what it does not have, and a code that nobody knows, look alike, as they do
there. Never: a key is in the log.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import unquote

from include.sandbox import absent
from include.sandbox.ecos_shelf import LISTED, Key, Plan, Shelf
from include.sandbox.exchange import Answer, Call, SwitchError, Upstream, World, instant_of, json_answer

HOST = "ecos.bok.or.kr"
MESSAGES = {
    "INFO-100": "인증키가 유효하지 않습니다.",
    "INFO-200": "해당하는 데이터가 없습니다.",
    "ERROR-100": "필수 값이 누락되어 있습니다.",
    "ERROR-101": "주기와 다른 형식의 날짜 형식입니다.",
    "ERROR-200": "파일타입 값이 누락 혹은 유효하지 않습니다.",
    "ERROR-300": "조회건수 값이 누락되어 있습니다.",
    "ERROR-301": "조회건수 값의 타입이 유효하지 않습니다.",
    "ERROR-400": "검색범위가 적정범위를 초과하여 60초 TIMEOUT이 발생하였습니다.",
    "ERROR-500": "서버 오류입니다.",
    "ERROR-600": "DB Connection 오류입니다.",
    "ERROR-601": "SQL 오류입니다.",
    "ERROR-602": "과도한 OpenAPI호출로 이용이 제한되었습니다.",
}
_DATES = {
    "A": r"[0-9]{4}", "S": r"[0-9]{4}S[12]", "Q": r"[0-9]{4}Q[1-4]", "M": r"[0-9]{6}", "SM": r"[0-9]{6}S[12]",
    "D": r"[0-9]{8}",
}  # fmt: skip
SPAN, LOCKED = timedelta(minutes=3), timedelta(minutes=30)


class Refusal(Exception):
    """An answer that says no: its code."""


@dataclass(frozen=True)
class House:
    """How the interface itself is set.

    `key` is what is said of any key, `page` the rows of a call at most, `limit` the calls in three minutes after which
    it locks out, `says` a code that so many calls are answered with.
    """

    key: str | None = None
    page: int | None = None
    limit: int | None = None
    says: tuple[str, int] = ("", 0)


class Ecos:
    """The stand-in: a shelf, and the switches that change its plan."""

    def __init__(self, world: World) -> None:
        self._lock = threading.Lock()
        # A small market has a short history: a year for each 25 companies, and two at least.
        self._shelf = Shelf(world.seed, max(world.companies // 25, 2))
        self._house = House()
        self._calls: deque[datetime] = deque()
        self._locked_until: datetime | None = None

    @property
    def shelf(self) -> Shelf:
        """What is published, for a test that asks beside the interface."""
        return self._shelf

    def answer(self, call: Call) -> Answer:
        """Answer a call; every refusal comes with status 200."""
        parts = [unquote(part) for part in call.path.strip("/").split("/")]
        try:
            self._admit(call.at)
            return json_answer(200, drifted(self._read(parts, call.at), call.drift))
        except Refusal as no:
            code = str(no)
            return json_answer(200, {"RESULT": {"CODE": code, "MESSAGE": MESSAGES[code]}})

    def _admit(self, at: datetime) -> None:
        with self._lock:
            house = self._house
            if house.says[1]:
                self._house = replace(house, says=(house.says[0], house.says[1] - 1))
                raise Refusal(house.says[0])
            if self._locked_until is not None and at < self._locked_until:
                raise Refusal("ERROR-602")
            self._calls.append(at)
            while self._calls[0] < at - SPAN:
                self._calls.popleft()
            if house.limit is not None and len(self._calls) > house.limit:
                self._locked_until = at + LOCKED
                self._calls.clear()
                raise Refusal("ERROR-602")

    def _read(self, parts: list[str], at: datetime) -> dict[str, Any]:
        if len(parts) < 7 or parts[0] != "api":
            raise Refusal("ERROR-100")
        _, service, key, form, _, first, last, *arguments = parts
        if self._house.key == "unknown" or not key:
            raise Refusal("INFO-100")
        if form != "json":
            raise Refusal("ERROR-200")
        if not first.isdigit() or not last.isdigit():
            raise Refusal("ERROR-300")
        count = int(last) - int(first) + 1
        if not 1 <= count <= 100_000 or (key == "sample" and count > 10):
            raise Refusal("ERROR-301")
        if service == "StatisticItemList":
            rows = self._items(arguments, at)
        elif service == "StatisticSearch":
            rows = self._values(arguments, at)
        else:
            raise Refusal("INFO-200")
        if not rows:
            raise Refusal("INFO-200")
        page = rows[int(first) - 1 : int(first) - 1 + min(count, self._house.page or count)]
        return {service: {"list_total_count": len(rows), "row": page}}

    def _items(self, arguments: list[str], at: datetime) -> list[dict[str, Any]]:
        statistic = arguments[0] if arguments else ""
        if statistic not in LISTED:
            return []
        levels, rows = self._shelf.levels(statistic), []
        for number, level in enumerate(levels, start=1):
            for cycle in self._shelf.cycles(statistic):
                for code in level:
                    codes = tuple(code if n == number else other[0] for n, other in enumerate(levels, start=1))
                    values = self._shelf.values((statistic, cycle, codes), at)
                    if values:
                        rows.append(
                            _item(
                                statistic, number, code, cycle, self._shelf.unit((statistic, cycle, codes), at), values
                            )
                        )
        return rows

    def _values(self, arguments: list[str], at: datetime) -> list[dict[str, Any]]:
        if len(arguments) < 4:
            raise Refusal("ERROR-100")
        statistic, cycle, start, end, *codes = arguments
        if not re.fullmatch(_DATES.get(cycle, ".*"), start) or not re.fullmatch(_DATES.get(cycle, ".*"), end):
            raise Refusal("ERROR-101")
        if statistic not in LISTED:
            return []
        rows = []
        for full in _every(self._shelf.levels(statistic), [code for code in codes if code not in ("", "?")]):
            key = (statistic, cycle, full)
            unit = self._shelf.unit(key, at)
            rows += [
                _value(key, unit, period, value)
                for period, value in self._shelf.values(key, at)
                if start <= period <= end
            ]
        return sorted(rows, key=lambda row: row["TIME"])

    def switch(self, order: Mapping[str, Any]) -> Mapping[str, Any]:
        """Change the plan; see `SWITCHES` and `HOUSE_SWITCHES` for the words.

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
                raise SwitchError(f"ECOS has no switch {word!r}; it has {known}")
        return self.view()

    def reset(self) -> None:
        """Forget all switches."""
        with self._lock:
            self._shelf, self._house, self._locked_until = replace(self._shelf, plan=Plan()), House(), None
            self._calls.clear()

    def view(self) -> dict[str, Any]:
        """What was switched, for reading."""
        plan, house = self._shelf.plan, self._house
        return {
            "revised": {_name(key): len(changes) for key, changes in plan.revised.items()},
            "units": {_name(key): [unit for _, unit in changes] for key, changes in plan.units.items()},
            "retired": sorted(_name(key) for key in plan.retired),
            "key": house.key,
            "page": house.page,
            "limit": house.limit,
            "says": house.says[0] if house.says[1] else None,
        }


def _every(levels: list[list[str]], codes: list[str]) -> list[tuple[str, ...]]:
    """Every series that some codes name; a level that is left out stands for all of its items."""
    found: list[tuple[str, ...]] = [()]
    for number, level in enumerate(levels):
        chosen = [codes[number]] if number < len(codes) else level
        found = [(*before, code) for before in found for code in chosen]
    return found if len(codes) <= len(levels) else []


def _item(
    statistic: str, level: int, code: str, cycle: str, unit: str, values: list[tuple[str, str]]
) -> dict[str, Any]:
    return {
        "STAT_CODE": statistic,
        "STAT_NAME": f"통계표 {statistic}",
        "GRP_CODE": f"Group{level}",
        "GRP_NAME": "계정항목",
        "ITEM_CODE": code,
        "ITEM_NAME": f"항목 {code}",
        "P_ITEM_CODE": None,
        "P_ITEM_NAME": None,
        "CYCLE": cycle,
        "START_TIME": values[0][0],
        "END_TIME": values[-1][0],
        "DATA_CNT": len(values),
        "UNIT_NAME": unit,
        "WEIGHT": None,
    }


def _value(key: Key, unit: str, period: str, value: str) -> dict[str, Any]:
    row: dict[str, Any] = {"STAT_CODE": key[0], "STAT_NAME": f"통계표 {key[0]}"}
    for number in range(1, 5):
        code = key[2][number - 1] if number <= len(key[2]) else None
        row[f"ITEM_CODE{number}"], row[f"ITEM_NAME{number}"] = code, f"항목 {code}" if code else None
    return {**row, "UNIT_NAME": unit, "WGT": None, "TIME": period, "DATA_VALUE": value}


def drifted(document: dict[str, Any], drift: str | None) -> dict[str, Any]:
    """The document with another schema: a field of its rows renamed, missing, or one more."""
    for content in document.values() if drift else ():
        for row in content["row"]:
            field = "DATA_VALUE" if "DATA_VALUE" in row else "ITEM_CODE"
            if drift == "extra":
                row["NEW_FIELD"] = "new"
            elif drift == "renamed":
                row[f"{field}_NEW"] = row.pop(field)
            else:
                row.pop(field)
    return document


def _name(key: Key) -> str:
    return ".".join((key[0], key[1], *key[2]))


def _key(order: Mapping[str, Any]) -> Key:
    statistic, _, rest = str(order.get("series", "")).partition(".")
    cycle, _, codes = rest.partition(".")
    if statistic not in LISTED or not codes:
        raise SwitchError(f'"series" names one, e.g. "722Y001.D.0101000", not {order.get("series")!r}')
    return statistic, cycle, tuple(codes.split("."))


def _revise(plan: Plan, order: Mapping[str, Any]) -> Plan:
    key, value = _key(order), order.get("value")
    if not isinstance(value, str):
        raise SwitchError('"value" is a text such as "3.5", "-" or ""')
    change = (instant_of(order.get("at"), '"at"'), str(order.get("period")), value)
    return replace(plan, revised={**plan.revised, key: (*plan.revised.get(key, ()), change)})


def _change_unit(plan: Plan, order: Mapping[str, Any]) -> Plan:
    key, change = _key(order), (instant_of(order.get("at"), '"at"'), str(order.get("unit")))
    return replace(plan, units={**plan.units, key: (*plan.units.get(key, ()), change)})


def _retire(plan: Plan, order: Mapping[str, Any]) -> Plan:
    return replace(plan, retired={**plan.retired, _key(order): instant_of(order.get("at"), '"at"')})


def _set_key(house: House, order: Mapping[str, Any]) -> House:
    if order.get("is") not in ("good", "unknown"):
        raise SwitchError('"is" says what is said of any key: good or unknown')
    return replace(house, key=None if order["is"] == "good" else "unknown")


def _set_number(field: str) -> Callable[[House, Mapping[str, Any]], House]:
    def change(house: House, order: Mapping[str, Any]) -> House:
        value = order.get("n")
        if value is not None and (not isinstance(value, int) or value < 1):
            raise SwitchError('"n" is a whole number above zero, or null for none')
        return replace(house, **{field: value})  # type: ignore[arg-type]

    return change


def _say(house: House, order: Mapping[str, Any]) -> House:
    code, count = order.get("code"), order.get("n", 1)
    if code not in MESSAGES or not isinstance(count, int) or count < 0:
        raise SwitchError(f'"code" is one of {", ".join(MESSAGES)}, "n" how many calls it is the answer to')
    return replace(house, says=(str(code), count))


# revise: a value becomes another. unit: a new base year. retire: the series is gone, as if it had never been.
SWITCHES: Mapping[str, Callable[[Plan, Mapping[str, Any]], Plan]] = {
    "revise": _revise,
    "unit": _change_unit,
    "retire": _retire,
}
# key: what is said of any key. page: rows of a call at most. limit: calls in three minutes. say: a code, so many times.
HOUSE_SWITCHES: Mapping[str, Callable[[House, Mapping[str, Any]], House]] = {
    "key": _set_key,
    "page": _set_number("page"),
    "limit": _set_number("limit"),
    "say": _say,
}


def _masked(path: str) -> str:
    """The path without the key, which stands behind the service."""
    return re.sub(r"^(/api/[^/]+/)[^/]+", r"\1***", path)


def upstream(world: World) -> Upstream:
    """ECOS as a stand-in."""
    ecos = Ecos(world)
    return Upstream(
        name="ecos",
        hosts=(HOST,),
        answer=ecos.answer,
        absent=absent.ecos,
        kind=lambda call: call.path.strip("/").split("/")[1] if call.path.count("/") > 1 else "other",
        switch=ecos.switch,
        view=ecos.view,
        reset=ecos.reset,
        mask=_masked,
    )
