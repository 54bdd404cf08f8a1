"""The stand-in speaks as Alpaca does: forms, pages, mapping of names, refusals and counters."""

from __future__ import annotations

import base64
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import httpx
import msgspec
import pytest

from tests.fixtures_sandbox import NEW_YORK, MovableClock, RunningSandbox, Start

KEY = {"APCA-API-KEY-ID": "an id", "APCA-API-SECRET-KEY": "a secret"}
BARS = "/data.alpaca.markets/v2/stocks/bars"


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock(datetime(2026, 9, 15, 19, 40, tzinfo=NEW_YORK))


@pytest.fixture
def alpaca(sandbox: Start, clock: MovableClock) -> RunningSandbox:
    return sandbox(clock=clock, companies=12)


def ask(
    alpaca: RunningSandbox, path: str = BARS, headers: dict[str, str] | None = None, **params: Any
) -> httpx.Response:
    if path == BARS:
        params = {"timeframe": "1Day", "start": "2026-09-01", "end": "2026-09-15", "feed": "sip", **params}
    return alpaca.get(path, params=params, headers=KEY if headers is None else headers)


def bars(alpaca: RunningSandbox, symbol: str, **params: Any) -> list[dict[str, Any]]:
    answer = ask(alpaca, symbols=symbol, **params)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["bars"].get(symbol, [])
    return found


def test_bars_have_the_form_and_the_stamp_of_a_day_in_new_york(alpaca: RunningSandbox) -> None:
    answer = ask(alpaca, symbols="AAPL,MSFT", limit=100)
    found = answer.json()
    assert list(found) == ["bars", "next_page_token"]
    assert found["next_page_token"] is None
    assert list(found["bars"]) == ["AAPL", "MSFT"]
    assert list(found["bars"]["AAPL"][0]) == ["t", "o", "h", "l", "c", "v", "n", "vw"]
    assert [bar["t"] for bar in found["bars"]["AAPL"]][-1] == "2026-09-15T04:00:00Z"
    assert len(found["bars"]["AAPL"]) == 10
    (winter,) = bars(alpaca, "AAPL", start="2026-01-05", end="2026-01-05")
    assert winter["t"] == "2026-01-05T05:00:00Z"
    exact = msgspec.json.Decoder(float_hook=Decimal).decode(answer.content)["bars"]["AAPL"]
    assert all(bar["l"] <= min(bar["o"], bar["c"]) and max(bar["o"], bar["c"]) <= bar["h"] for bar in exact)


def test_a_page_ends_at_the_limit_and_its_token_goes_on_behind_its_last_bar(alpaca: RunningSandbox) -> None:
    whole = ask(alpaca, symbols="MSFT,AAPL", limit=10000).json()["bars"]
    for limit in (1, 3, 10, 11, 20):
        found: dict[str, list[Any]] = {}
        token, pages = None, 0
        while token is not None or pages == 0:
            page = ask(alpaca, symbols="MSFT,AAPL", limit=limit, **({"page_token": token} if token else {})).json()
            for symbol, listed in page["bars"].items():
                found.setdefault(symbol, []).extend(listed)
            token, pages = page["next_page_token"], pages + 1
        assert found == whole, limit
        assert pages == -(-20 // limit)
    first = ask(alpaca, symbols="MSFT,AAPL", limit=10).json()
    assert list(first["bars"]) == ["AAPL"]
    assert base64.b64decode(first["next_page_token"]).decode() == "AAPL|D|2026-09-15T04:00:00.000000000Z"


def test_who_has_nothing_is_left_out_and_one_symbol_alone_answers_null(alpaca: RunningSandbox) -> None:
    assert ask(alpaca, symbols="AAPL,ZZZZZ").json()["bars"].keys() == {"AAPL"}
    assert ask(alpaca, symbols="ZZZZZ").json() == {"bars": {}, "next_page_token": None}
    one = ask(
        alpaca, "/data.alpaca.markets/v2/stocks/ZZZZZ/bars", timeframe="1Day", start="2026-09-01", end="2026-09-02"
    )
    assert one.json() == {"bars": None, "symbol": "ZZZZZ", "next_page_token": None}
    closed = ask(alpaca, symbols="AAPL", start="2026-09-07", end="2026-09-07")
    assert closed.json() == {"bars": {}, "next_page_token": None}


@pytest.mark.parametrize(
    ("params", "status", "message"),
    [
        ({"symbols": "AAPL,CSP1"}, 400, "invalid symbol: CSP1"),
        ({"symbols": "aapl"}, 400, "invalid symbol: aapl"),
        ({"symbols": ""}, 400, "symbols is required"),
        ({"symbols": "AAPL", "timeframe": "2Day"}, 400, "invalid timeframe: 2Day"),
        ({"symbols": "AAPL", "limit": "10001"}, 400, "invalid limit: 10001"),
        ({"symbols": "AAPL", "page_token": "null"}, 400, "invalid page_token"),
        ({"symbols": "AAPL", "start": "2026-09-15", "end": "2026-09-01"}, 400, "end should not be before start"),
        ({"symbols": "AAPL", "adjustment": "some"}, 400, "invalid adjustment: some"),
    ],
)
def test_what_cannot_be_is_refused_with_a_message(
    alpaca: RunningSandbox, params: dict[str, str], status: int, message: str
) -> None:
    answer = ask(alpaca, **params)
    assert (answer.status_code, answer.json()) == (status, {"message": message})


def test_the_free_plan_has_no_recent_sip_data_and_the_other_plan_has(
    alpaca: RunningSandbox, clock: MovableClock
) -> None:
    recent = {"symbols": "AAPL", "timeframe": "1Min", "start": "2026-09-15T19:00:00-04:00"}
    refused = ask(alpaca, **recent, end="2026-09-15T19:26:00-04:00")
    assert (refused.status_code, refused.json()) == (
        403,
        {"message": "subscription does not permit querying recent SIP data"},
    )
    assert ask(alpaca, **recent, end="2026-09-15T19:25:00-04:00").status_code == 200
    assert ask(alpaca, **{**recent, "feed": "iex"}, end="2026-09-15T19:39:00-04:00").status_code == 200
    alpaca.switch("alpaca", "plan", plan="plus")
    assert ask(alpaca, **recent, end="2026-09-15T19:39:00-04:00").status_code == 200


def test_feeds_differ_in_volume_alone(alpaca: RunningSandbox) -> None:
    sip, iex = bars(alpaca, "AAPL"), bars(alpaca, "AAPL", feed="iex")
    assert [bar["c"] for bar in sip] == [bar["c"] for bar in iex]
    assert all(one["v"] > 30 * other["v"] for one, other in zip(sip, iex, strict=True))


def test_the_account_is_asked_for_and_counted(alpaca: RunningSandbox, clock: MovableClock) -> None:
    assert ask(alpaca, symbols="AAPL", headers={}).status_code == 401
    answer = ask(alpaca, symbols="AAPL")
    assert answer.headers["x-ratelimit-limit"] == "200"
    assert answer.headers["x-ratelimit-remaining"] == "199"
    assert int(answer.headers["x-ratelimit-reset"]) == int(datetime(2026, 9, 15, 19, 41, tzinfo=NEW_YORK).timestamp())
    assert answer.headers["x-request-id"] != ask(alpaca, symbols="AAPL").headers["x-request-id"]
    with httpx.Client(base_url=alpaca.url, headers=KEY) as client:
        codes = [client.get("/paper-api.alpaca.markets/v2/assets/AAPL").status_code for _ in range(199)]
    assert codes == [200] * 198 + [429]
    clock.advance(minutes=1)
    assert ask(alpaca, symbols="AAPL").status_code == 200
    assert "a secret" not in str(alpaca.requests())


def test_a_split_is_a_jump_in_raw_prices_and_rewrites_the_adjusted_ones(
    alpaca: RunningSandbox, clock: MovableClock
) -> None:
    before = bars(alpaca, "NVDA")
    alpaca.switch("alpaca", "split", symbol="NVDA", day="2026-09-16", ratio=[4, 1])
    assert bars(alpaca, "NVDA") == bars(alpaca, "NVDA", adjustment="split") == before
    clock.advance(days=1)
    raw, adjusted = bars(alpaca, "NVDA", end="2026-09-16"), bars(alpaca, "NVDA", end="2026-09-16", adjustment="split")
    assert raw[:-1] == before
    assert raw[-1] == adjusted[-1]
    assert all(abs(one["c"] / 4 - other["c"]) < 0.001 for one, other in zip(raw[:-1], adjusted[:-1], strict=True))
    assert raw[-1]["c"] < before[-1]["c"] / 3


def test_names_are_literal_or_mapped_as_of_a_day_and_may_be_used_again(
    alpaca: RunningSandbox, clock: MovableClock
) -> None:
    alpaca.switch("alpaca", "rename", symbol="META", to="FACE", day="2026-09-09")
    alpaca.switch("alpaca", "list", symbol="META", day="2026-09-14")

    def days(symbol: str, asof: str) -> list[str]:
        return [bar["t"][8:10] for bar in bars(alpaca, symbol, asof=asof)]

    assert days("META", "-") == ["01", "02", "03", "04", "08", "14", "15"]
    assert days("FACE", "-") == ["09", "10", "11", "14", "15"]
    assert days("FACE", "2026-09-10") == ["01", "02", "03", "04", "08", "09", "10", "11", "14", "15"]
    assert days("META", "2026-09-08") == days("FACE", "2026-09-10")
    assert days("META", "2026-09-15") == ["14", "15"]


def test_minutes_are_gaps_where_nobody_traded_and_end_early_on_short_days(
    alpaca: RunningSandbox, clock: MovableClock
) -> None:
    alpaca.switch("alpaca", "halt", symbol="AAPL", day="2026-09-14", **{"from": "11:00", "until": "11:30"})

    def clocks(day: str, **more: Any) -> list[str]:
        found = bars(alpaca, "AAPL", timeframe="1Min", start=day, end=f"{day}T23:59:00-05:00", limit=10000, **more)
        at = [datetime.fromisoformat(bar["t"]).astimezone(NEW_YORK) for bar in found]
        return [f"{one:%H:%M}" for one in at]

    minutes = clocks("2026-09-14")
    assert not [minute for minute in minutes if "11:00" <= minute < "11:30"]
    assert "04:00" <= minutes[0] < "09:30"
    assert minutes[-1] > "16:00"
    assert max(clocks("2025-11-28")) < "17:00"
    hours = bars(alpaca, "AAPL", timeframe="1Hour", start="2026-09-14", end="2026-09-14T23:59:00-04:00", limit=10000)
    assert sum(bar["n"] for bar in hours) == sum(
        bar["n"]
        for bar in bars(
            alpaca, "AAPL", timeframe="1Min", start="2026-09-14", end="2026-09-14T23:59:00-04:00", limit=10000
        )
    )


def test_a_late_bar_is_other_or_missing_until_it_comes(alpaca: RunningSandbox, clock: MovableClock) -> None:
    usual = bars(alpaca, "AAPL")[-1]
    until = (clock.at + timedelta(hours=1)).isoformat()
    alpaca.switch("alpaca", "late", symbol="AAPL", day="2026-09-15", until=until, how="missing")
    assert bars(alpaca, "AAPL")[-1]["t"] == "2026-09-14T04:00:00Z"
    clock.advance(hours=2)
    assert bars(alpaca, "AAPL")[-1]["c"] == pytest.approx(usual["c"] + 0.01)


def test_assets_keep_their_number_and_are_inactive_when_gone(alpaca: RunningSandbox, clock: MovableClock) -> None:
    path = "/paper-api.alpaca.markets/v2/assets"
    first = {asset["symbol"]: asset for asset in ask(alpaca, path).json()}
    alpaca.switch("alpaca", "rename", symbol="META", to="FACE", day="2026-09-15")
    alpaca.switch("alpaca", "delist", symbol="TSLA", day="2026-09-14")
    then = {asset["symbol"]: asset for asset in ask(alpaca, path).json()}
    assert then["FACE"]["id"] == first["META"]["id"]
    assert (then["TSLA"]["status"], then["TSLA"]["exchange"]) == ("inactive", "OTC")
    assert {asset["symbol"] for asset in ask(alpaca, path, status="active").json()} == set(then) - {"TSLA"}
    missing = ask(alpaca, f"{path}/ZZZZNOTREAL")
    assert (missing.status_code, missing.json()) == (
        404,
        {"code": 40410000, "message": "asset not found for ZZZZNOTREAL"},
    )


def test_the_calendar_knows_closed_and_short_days(alpaca: RunningSandbox) -> None:
    found = ask(alpaca, "/paper-api.alpaca.markets/v2/calendar", start="2025-11-24", end="2025-12-31").json()
    by_day = {date.fromisoformat(each["date"]): each for each in found}
    assert len(found) == 26
    assert date(2025, 11, 27) not in by_day
    assert [str(day) for day, each in by_day.items() if each["close"] == "13:00"] == ["2025-11-28", "2025-12-24"]
    assert by_day[date(2025, 11, 26)]["settlement_date"] == "2025-11-28"


def test_any_number_of_symbols_is_generated_the_same_from_the_same_seed(sandbox: Start, clock: MovableClock) -> None:
    one, other, another = (sandbox(clock=clock, companies=400, seed=seed, state=None) for seed in (7, 7, 8))
    symbols = [asset["symbol"] for asset in ask(one, "/paper-api.alpaca.markets/v2/assets").json()]
    assert len(set(symbols)) == 400
    asked = {"symbols": ",".join(symbols[:200]), "limit": 10000}
    assert ask(one, **asked).content == ask(other, **asked).content != ask(another, **asked).content


def test_a_switch_that_cannot_be_is_refused(alpaca: RunningSandbox) -> None:
    for order in (
        {"switch": "no such"},
        {"switch": "plan", "plan": "gold"},
        {"switch": "split", "symbol": "AAPL", "day": "2026-09-15", "ratio": [4]},
        {"switch": "split", "symbol": "AAPL", "day": "yesterday", "ratio": [4, 1]},
        {"switch": "late", "symbol": "AAPL", "day": "2026-09-15", "until": "2026-09-15T10:00:00-04:00", "how": "odd"},
        {"switch": "halt", "symbol": "AAPL", "day": "2026-09-15", "from": "morning", "until": "11:00"},
        {"switch": "rename", "symbol": "", "to": "X", "day": "2026-09-15"},
    ):
        answer = httpx.post(f"{alpaca.url}/_sandbox/switches", json={"upstream": "alpaca", **order})
        assert answer.status_code == 400, order
    alpaca.switch("alpaca", "silence", symbol="AAPL")
    assert bars(alpaca, "AAPL") == []
    alpaca.control("DELETE", "switches")
    assert bars(alpaca, "AAPL")
