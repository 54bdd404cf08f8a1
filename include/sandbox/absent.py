"""What each upstream says when it does not have what was asked.

Promises: status, type and body have the form of that upstream's own answer. Never: an upstream whose answer
is not known is given another one's; it gets a plain 404.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from include.sandbox.exchange import Answer, Call, json_answer

XML = ("Content-Type", "application/xml")
HTML = ("Content-Type", "text/html; charset=utf-8")


def _request_ids(call: Call) -> tuple[str, str]:
    """The two identifiers that an object store puts into an error; the same for the same call."""
    digest = hashlib.sha256(f"{call.host}{call.path}".encode()).hexdigest()
    return digest[:16].upper(), digest[16:]


def access_denied(call: Call) -> Answer:
    """403 of an object store that does not say whether the object exists."""
    request, host = _request_ids(call)
    body = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        "<Error><Code>AccessDenied</Code><Message>Access Denied</Message>"
        f"<RequestId>{request}</RequestId><HostId>{host}</HostId></Error>"
    )
    return Answer(403, body.encode(), (XML,))


def no_such_key(call: Call) -> Answer:
    """404 of an object store that says which object is missing."""
    request, host = _request_ids(call)
    body = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>NoSuchKey</Code>'
        "<Message>The specified key does not exist.</Message>"
        f"<Key>{call.plain_path.lstrip('/')}</Key>"
        f"<RequestId>{request}</RequestId><HostId>{host}</HostId></Error>"
    )
    return Answer(404, body.encode(), (XML,))


def sec_site(call: Call) -> Answer:
    """The SEC's archive refuses what it does not have; its pages are not found."""
    if call.path.startswith("/Archives/"):
        return access_denied(call)
    return Answer(404, b"<html><head><title>SEC.gov | Page not found</title></head><body></body></html>", (HTML,))


def dart(call: Call) -> Answer:
    """DART answers 200 with status 013; the archive endpoints answer in XML."""
    message = "조회된 데이타가 없습니다."
    if call.path.endswith(".xml"):
        told = f"<result><status>013</status><message>{message}</message></result>"
        body = f'<?xml version="1.0" encoding="UTF-8"?>{told}'
        return Answer(200, body.encode(), (XML,))
    return json_answer(200, {"status": "013", "message": message})


def dart_site(call: Call) -> Answer:
    """DART's viewer answers 200 with a page that holds no document."""
    return Answer(200, b"<html><head><title>DART</title></head><body></body></html>", (HTML,))


def ecos(call: Call) -> Answer:
    """ECOS answers 200 with INFO-200."""
    return json_answer(200, {"RESULT": {"CODE": "INFO-200", "MESSAGE": "해당하는 데이터가 없습니다."}})


def krx_site(call: Call) -> Answer:
    """KRX's site answers an empty block."""
    return json_answer(200, {"output": [], "CURRENT_DATETIME": call.at.strftime("%Y.%m.%d %p %I:%M:%S")})


def krx_open(call: Call) -> Answer:
    """KRX's open interface answers 200 with an empty block, whatever the reason."""
    return json_answer(200, {"OutBlock_1": []})


def kind(call: Call) -> Answer:
    """KIND answers a table without rows."""
    body = "<html><body><table><tbody><tr><td>조회된 결과값이 없습니다.</td></tr></tbody></table></body></html>"
    return Answer(200, body.encode(), (HTML,))


def fred(call: Call) -> Answer:
    """FRED refuses what it does not know."""
    message = "Bad Request.  The series does not exist."
    return json_answer(400, {"error_code": 400, "error_message": message})


def alpaca_data(call: Call) -> Answer:
    """Alpaca leaves out symbols for which it has nothing."""
    if call.path.startswith("/v2/stocks/"):
        name = call.path.rsplit("/", 1)[-1]
        return json_answer(200, {name: {}, "next_page_token": None})
    return json_answer(404, {"message": "Not Found"})


def alpaca_trading(call: Call) -> Answer:
    """Alpaca's trading interface: an unknown asset is not found, a calendar without days is empty."""
    if call.path.rstrip("/") in ("/v2/calendar", "/v2/assets"):
        return json_answer(200, [])
    name = call.plain_path.rsplit("/", 1)[-1]
    return json_answer(404, {"code": 40410000, "message": f"asset not found for {name}"})


def not_found(call: Call) -> Answer:
    """The plain answer of a host whose own is not known."""
    return json_answer(404, {"error": "not found"})


BY_HOST: dict[str, Callable[[Call], Answer]] = {
    "api.stlouisfed.org": fred,
    "cdn.finra.org": access_denied,
    "dart.fss.or.kr": dart_site,
    "data-dbg.krx.co.kr": krx_open,
    "data.alpaca.markets": alpaca_data,
    "data.krx.co.kr": krx_site,
    "data.sec.gov": no_such_key,
    "ecos.bok.or.kr": ecos,
    "kind.krx.co.kr": kind,
    "opendart.fss.or.kr": dart,
    "paper-api.alpaca.markets": alpaca_trading,
    "www.sec.gov": sec_site,
}
