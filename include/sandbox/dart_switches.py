"""The switches of DART's stand-in: what may be changed of the filings and of the interface, in words.

Promises: an order that cannot be read changes nothing and is answered with what would do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from include.sandbox.dart_filings import FLAGS, SEOUL, Company, Events, Filing, Filings, number_of
from include.sandbox.exchange import SwitchError, instant_of

STATUSES = {
    "010": "등록되지 않은 키입니다.",
    "011": "사용할 수 없는 키입니다.",
    "012": "접근할 수 없는 IP입니다.",
    "013": "조회된 데이타가 없습니다.",
    "014": "파일이 존재하지 않습니다.",
    "020": "요청 제한을 초과하였습니다.",
    "021": "조회 가능한 회사 개수가 초과하였습니다.",
    "100": "필드의 부적절한 값입니다.",
    "101": "부적절한 접근입니다.",
    "800": "시스템 점검으로 인한 서비스가 중지 중입니다.",
    "900": "정의되지 않은 오류가 발생하였습니다.",
    "901": "사용자 계정의 개인정보 보유기간이 만료되어 사용할 수 없는 키입니다.",
}
MAINTENANCE = (
    "<!DOCTYPE html>\n<html><head><title>시스템 점검 안내</title></head>"
    "<body><h1>서비스 점검 중입니다.</h1><p>이용에 불편을 드려 죄송합니다.</p></body></html>\n"
).encode()
BLOCKED = (
    "<html><head><title>접근 차단</title></head><body>"
    "<p>비정상적인 접근이 감지되어 접속이 차단되었습니다.</p></body></html>\n"
).encode()


@dataclass(frozen=True)
class House:
    """How the interface is set.

    `says` is the status that every answer has (None: the right one), `page` whether a maintenance page stands in for
    all of them, `quota` the requests of a key and day, `per_minute` the requests of a minute after which the address is
    blocked until `blocked_until`, `last_companies` how many companies the list of companies has (None: all). `out` are
    endpoints that answer with a page or an HTTP status, `lag` how much later than usual the data of reports are there.
    """

    says: str | None = None
    page: bool = False
    quota: int = 20_000
    per_minute: int = 1_000
    blocked_until: datetime | None = None
    last_companies: int | None = None
    out: Mapping[str, str] = field(default_factory=dict)
    lag: timedelta = timedelta(0)


def _receipt(order: Mapping[str, Any]) -> str:
    number = order.get("rcept_no")
    if not isinstance(number, str) or len(number) != 14 or not number.isdigit():
        raise SwitchError('"rcept_no" names a filing by its 14 digits')
    return number


def _add(filings: Filings, order: Mapping[str, Any]) -> Events:
    at = instant_of(order.get("at"), '"at"')
    market, title = str(order.get("market", "Y")), order.get("title")
    if not isinstance(title, str) or not title or market not in FLAGS:
        raise SwitchError(f'"title" is a text, "market" one of {", ".join(FLAGS)}')
    found = _company(filings, order, market)
    day = at.astimezone(SEOUL).date()
    number = str(order.get("rcept_no") or number_of(day, 9_000 + len(filings.events.added), at_exchange=False))
    submitter = str(order.get("submitter", found.name))
    kind = str(order.get("kind", "A"))
    filing = Filing(
        found, title, kind, number, at, submitter, str(order.get("rm", FLAGS[market])), order.get("corrects")
    )
    return replace(filings.events, added=(*filings.events.added, filing))


def _company(filings: Filings, order: Mapping[str, Any], market: str) -> Company:
    wanted = order.get("corp_code")
    for each in filings.listed:
        if each.corp_code == wanted or (wanted is None and each.market == market):
            return each
    raise SwitchError(f'"corp_code" {wanted!r} is no company of this market; leave it out for any')


def _withdraw(filings: Filings, order: Mapping[str, Any]) -> Events:
    at = instant_of(order.get("at"), '"at"')
    return replace(filings.events, withdrawn={**filings.events.withdrawn, _receipt(order): at})


def _hide(filings: Filings, order: Mapping[str, Any]) -> Events:
    at = instant_of(order.get("at"), '"at"')
    return replace(filings.events, hidden={**filings.events.hidden, _receipt(order): at})


def _document(filings: Filings, order: Mapping[str, Any]) -> Events:
    at = instant_of(order.get("at"), '"at"')
    return replace(filings.events, documents={**filings.events.documents, _receipt(order): at})


def _cut(filings: Filings, order: Mapping[str, Any]) -> Events:
    number, cut = _receipt(order), filings.events.cut
    return replace(filings.events, cut=cut | {number} if order.get("is", True) else cut - {number})


def _say(house: House, order: Mapping[str, Any]) -> House:
    status = order.get("status")
    if status is not None and status not in STATUSES:
        raise SwitchError(f'"status" is null or one of {", ".join(STATUSES)}, not {status!r}')
    return replace(house, says=status)


def _maintain(house: House, order: Mapping[str, Any]) -> House:
    return replace(house, page=bool(order.get("is", True)))


def _number(field: str) -> Callable[[House, Mapping[str, Any]], House]:
    def change(house: House, order: Mapping[str, Any]) -> House:
        value = order.get("n")
        if not isinstance(value, int) or value < 0:
            raise SwitchError('"n" is a whole number')
        return replace(house, **{field: value})  # type: ignore[arg-type]

    return change


def _put_out(house: House, order: Mapping[str, Any]) -> House:
    endpoint, how = order.get("endpoint"), order.get("as", "page")
    if not isinstance(endpoint, str) or not (how in ("page", None) or str(how).isdigit()):
        raise SwitchError('"endpoint" is a name, "as" is page, an HTTP status, or null for what works again')
    others = {name: way for name, way in house.out.items() if name != endpoint}
    return replace(house, out=others if how is None else {**others, endpoint: str(how)})


def _lag(house: House, order: Mapping[str, Any]) -> House:
    hours = order.get("hours")
    if not isinstance(hours, int | float) or hours < 0:
        raise SwitchError('"hours" is a number of hours')
    return replace(house, lag=timedelta(hours=hours))


# add: a filing more, from an instant on. withdraw: it is marked so. hide: the list no longer shows it. document: from
# when its document can be had. cut: its archive is cut off.
SWITCHES: Mapping[str, Callable[[Filings, Mapping[str, Any]], Events]] = {
    "add": _add,
    "withdraw": _withdraw,
    "hide": _hide,
    "document": _document,
    "cut": _cut,
}
# say: the status of every answer. maintenance: a page in place of answers. quota: requests of a key and day. limit:
# requests of a minute, above which the address is blocked for a day. companies: how many the list of companies has.
# out: an endpoint is out of order. lag: the data of reports are there so many hours later than usual.
HOUSE_SWITCHES: Mapping[str, Callable[[House, Mapping[str, Any]], House]] = {
    "say": _say,
    "maintenance": _maintain,
    "quota": _number("quota"),
    "limit": _number("per_minute"),
    "companies": _number("last_companies"),
    "out": _put_out,
    "lag": _lag,
}
