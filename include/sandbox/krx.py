"""KRX's OpenAPI: daily trade, masters and indices of data-dbg.krx.co.kr, with its keys, its quota and its silences.

Promises: a session is there from about 08:00 in Seoul on the morning of the next one, by the simulated clock; a closed
day, a day to come and one that is not published yet are the same empty block. Never: rows for a day that the market was
closed on, unless a switch asked for placeholders.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from include.sandbox import absent
from include.sandbox.exchange import Answer, Call, SwitchError, Upstream, World, json_answer
from include.sandbox.krx_forms import SERVICES, Row, body
from include.sandbox.krx_market import Market
from include.sandbox.krx_switches import EVENT_SWITCHES, HOUSE_SWITCHES, House

HOST = "data-dbg.krx.co.kr"
SEOUL = ZoneInfo("Asia/Seoul")
PATH = re.compile(r"/svc/apis/(?P<service>[a-z]+/[a-z_]+)(?:\.json)?")
PUBLISHED_FROM = time(8, 0)
QUOTA = 10_000


@dataclass(frozen=True)
class Exchange:
    """The market and how the interface is set: pure questions about any instant."""

    market: Market
    house: House = field(default_factory=House)

    def published_at(self, service: str, day: date) -> datetime | None:
        """When a session appears at a service, or None where it never does."""
        days = self.market.days
        if day < SERVICES[service][0] or not days.is_session(day):
            return None
        if (day, service) in self.house.published:
            return self.house.published[(day, service)]
        seconds = Random(f"{self.market.seed}/{service}/{day}").randrange(0, 300)
        return datetime.combine(days.session_offset(day, 1), PUBLISHED_FROM, SEOUL) + timedelta(seconds=seconds)

    def rows(self, service: str, day: date, at: datetime) -> list[Row]:
        """What a service has for a day at an instant."""
        # Asked first: a calendar knows nothing of days that are years ahead.
        if day > at.astimezone(SEOUL).date():
            return []
        since, (_, make) = self.published_at(service, day), SERVICES[service]
        if since is None or at < since:
            if day in self.house.placeholders:
                return [_placeholder(row) for row in make(self.market, self.market.days.last_session(day))]
            return []
        rows = make(self.market, day)
        for instant, kept in self.house.partial.get((day, service), ()):
            if at < instant:
                return rows[: len(rows) * kept // 100]
        for instant, column, change in self.house.revised.get((day, service), ()):
            if at >= instant:
                rows = [{**rows[0], column: str(int(rows[0][column]) + change)}, *rows[1:]]
        return rows


def _placeholder(row: Row) -> Row:
    kept = ("ISU_CD", "ISU_NM", "MKT_NM", "SECT_TP_NM", "LIST_SHRS", "BAS_DD", "IDX_CLSS", "IDX_NM")
    return {name: value if name in kept else "-" for name, value in row.items()}


class Krx:
    """The stand-in: an exchange and the switches that change it."""

    def __init__(self, world: World) -> None:
        self._lock = threading.Lock()
        self._exchange = Exchange(Market(world.seed, world.companies))
        self._used: Counter[tuple[str, date]] = Counter()

    @property
    def exchange(self) -> Exchange:
        """What is published, for a test that asks beside the interface."""
        return self._exchange

    def answer(self, call: Call) -> Answer:
        """Answer a call: rows, an empty block, or a refusal."""
        asked, house = PATH.fullmatch(call.plain_path), self._exchange.house
        if asked is None or asked["service"] not in SERVICES:
            return json_answer(403, {"respMsg": "Forbidden", "respCode": "403"})
        key, service = call.headers.get("auth_key", ""), asked["service"]
        if not key or house.key == "unknown":
            return json_answer(401, {"respMsg": "Unauthorized Key", "respCode": "401"})
        if service in house.refused:
            status = 200 if house.refuses_with_200 else 401
            return json_answer(status, {"respMsg": "Unauthorized API Call", "respCode": "401"})
        today = call.at.astimezone(SEOUL).date()
        with self._lock:
            self._used[(key, today)] += 1
            is_over = self._used[(key, today)] > (house.quota or QUOTA)
        if is_over:
            return json_answer(429, {"respMsg": "Too Many Requests", "respCode": "429"})
        text = call.params().get("basDd", "")
        try:
            day = date(int(text[:4]), int(text[4:6]), int(text[6:]))
        except ValueError:
            return absent.krx_open(call)
        other = house.answers_with.get(day, day)
        rows = self._exchange.rows(service, other, call.at)
        if call.drift:
            rows = drifted(rows, call.drift)
        return Answer(200, body(rows), (("Content-Type", "application/json;charset=UTF-8"),))

    def switch(self, order: Mapping[str, Any]) -> Mapping[str, Any]:
        """Change the market or the interface; see `krx_switches` for the words.

        Raises:
            SwitchError: the order cannot be read.
        """
        word = str(order.get("switch", ""))
        with self._lock:
            exchange = self._exchange
            if word in EVENT_SWITCHES:
                market = replace(exchange.market, events=EVENT_SWITCHES[word](exchange.market, order))
                self._exchange = replace(exchange, market=market)
            elif word in HOUSE_SWITCHES:
                self._exchange = replace(exchange, house=HOUSE_SWITCHES[word](exchange.house, order))
            else:
                known = ", ".join(sorted({*EVENT_SWITCHES, *HOUSE_SWITCHES}))
                raise SwitchError(f"KRX has no switch {word!r}; it has {known}")
        return self.view()

    def reset(self) -> None:
        """Forget all switches and what was counted."""
        with self._lock:
            market = self._exchange.market
            self._exchange = Exchange(Market(market.seed, market.companies))
            self._used.clear()

    def view(self) -> dict[str, Any]:
        """What was switched, for reading."""
        events, house = self._exchange.market.events, self._exchange.house
        return {
            "closed": sorted(map(str, events.closed)),
            "opened": sorted(map(str, events.opened)),
            "ended": {code: str(day) for code, day in events.ends.items()},
            "refused": sorted(house.refused),
            "key": house.key,
            "quota": house.quota,
            "placeholders": sorted(map(str, house.placeholders)),
            "published": {f"{service} {day}": str(at) for (day, service), at in house.published.items()},
        }


def drifted(rows: list[Row], drift: str) -> list[Row]:
    """The rows with another schema: a column renamed, missing, or one more."""
    column = "LIST_SHRS" if rows and "LIST_SHRS" in rows[0] else "FLUC_RT"
    if drift == "extra":
        return [{**row, "NXT_TRDVOL": "7"} for row in rows]
    renamed = {} if drift == "missing" else {f"{column}_NEW": "1"}
    return [{**{name: value for name, value in row.items() if name != column}, **renamed} for row in rows]


def upstream(world: World) -> Upstream:
    """KRX as a stand-in."""
    krx = Krx(world)
    return Upstream(
        name="krx",
        hosts=(HOST,),
        answer=krx.answer,
        absent=absent.krx_open,
        kind=lambda call: call.path.rpartition("/")[2].removesuffix(".json"),
        switch=krx.switch,
        view=krx.view,
        reset=krx.reset,
        secret_params=frozenset({"AUTH_KEY"}),
    )
