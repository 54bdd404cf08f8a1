"""KRX's services, one for each market or family of indices, and the requests that ask them for a day.

Promises: a request is for one service and one day, and gets the whole market; the market of a row is that of the
service that was asked, whatever label it carries. Never: the key is in a request that is planned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from include.contract import Ask, Request

HOST = "https://data-dbg.krx.co.kr"


@dataclass(frozen=True)
class Service:
    """One service of the OpenAPI: its path, its name in KRX's list of services, and the first day that it has."""

    path: str
    title: str
    since: date


_SINCE, _KONEX_SINCE = date(2010, 1, 4), date(2013, 7, 1)

PRICES: Mapping[str, Service] = {
    "KOSPI": Service("sto/stk_bydd_trd", "KOSPI daily trade", _SINCE),
    "KOSDAQ": Service("sto/ksq_bydd_trd", "KOSDAQ daily trade", _SINCE),
    "KONEX": Service("sto/knx_bydd_trd", "KONEX daily trade", _KONEX_SINCE),
}
ISSUES: Mapping[str, Service] = {
    "KOSPI": Service("sto/stk_isu_base_info", "KOSPI issue master", _SINCE),
    "KOSDAQ": Service("sto/ksq_isu_base_info", "KOSDAQ issue master", _SINCE),
    "KONEX": Service("sto/knx_isu_base_info", "KONEX issue master", _KONEX_SINCE),
}
INDICES: Mapping[str, Service] = {
    "KOSPI": Service("idx/kospi_dd_trd", "KOSPI series indices", _SINCE),
    "KOSDAQ": Service("idx/kosdaq_dd_trd", "KOSDAQ series indices", _SINCE),
    "KRX": Service("idx/krx_dd_trd", "KRX series indices", _SINCE),
    "BOND": Service("idx/bon_dd_trd", "bond indices", _SINCE),
    "DERIVATIVES": Service("idx/drvprod_dd_trd", "derivatives indices", _SINCE),
}


def title_of(request: Request) -> str:
    """Return the name of the service that a request is for, as an operator finds it in KRX's list."""
    path = request.url.partition("/svc/apis/")[2]
    services = (*PRICES.values(), *ISSUES.values(), *INDICES.values())
    return next((f"{service.title} ({path})" for service in services if service.path == path), path)


def request(services: Mapping[str, Service], name: str, day: date, *, is_session: bool = True) -> Request:
    """Return the request for one service and day, which expects data on sessions since the service's first day."""
    expected = is_session and day >= services[name].since
    key = f"{name}/{day.isoformat()}"
    return Request(
        key=key,
        unit=key,
        url=f"{HOST}/svc/apis/{services[name].path}",
        params=(("basDd", f"{day:%Y%m%d}"),),
        session_date=day,
        expected=expected,
        required=expected,
    )


def planner(services: Mapping[str, Service]) -> Callable[[Ask], Iterator[Request]]:
    """Return the plan of a stream: a request for each service and day, the newest sessions first, then pending keys.

    `keys` limits it to some services. A day that the calendar calls closed is asked for once, in a backfill, at the
    first of the services: one that has data shows that the calendar is wrong, and then the others are asked too.
    """

    def plan(ask: Ask) -> Iterator[Request]:
        wanted = [name for name in services if not ask.keys or name in ask.keys]
        planned = set()
        for day in ask.sessions:
            for name in wanted:
                if day >= services[name].since:
                    planned.add(f"{name}/{day.isoformat()}")
                    yield request(services, name, day)
        for name, day in _named(ask.pending):
            if name in wanted and f"{name}/{day.isoformat()}" not in planned:
                yield request(services, name, day)
        for day in ask.closed:
            yield from (request(services, name, day, is_session=False) for name in wanted[:1])

    return plan


def _named(keys: Iterable[str]) -> Iterator[tuple[str, date]]:
    for key in keys:
        name, _, day = key.partition("/")
        yield name, date.fromisoformat(day)
