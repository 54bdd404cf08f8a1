"""The SEC's stand-in: its market, its clock, its formats, its refusals and its switches."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from include.sandbox.exchange import Answer, Call, SwitchError, World
from include.sandbox.sec import DATA, WWW, Sec
from include.sandbox.sec_market import NEW_YORK, SAME_DAY, Market

TUESDAY, WEDNESDAY = date(2026, 9, 15), date(2026, 9, 16)
AGENT = {"user-agent": "Daybook tests@daybook.invalid"}


def at(day: date, hour: int, minute: int = 0) -> datetime:
    return datetime(day.year, day.month, day.day, hour, minute, tzinfo=NEW_YORK)


@pytest.fixture
def sec(tmp_path: Path) -> Sec:
    return Sec(World(tmp_path, companies=60))


def ask(sec: Sec, path: str, instant: datetime, host: str = WWW, headers: Any = AGENT, **params: str) -> Answer:
    return sec.answer(Call("GET", host, path, urlencode(params), headers, b"", instant))


def feed(sec: Sec, instant: datetime, start: int = 0, count: int = 100) -> Answer:
    asked = {"action": "getcurrent", "output": "atom", "start": str(start), "count": str(count)}
    return ask(sec, "/cgi-bin/browse-edgar", instant, **asked)


def numbers(body: bytes) -> list[str]:
    return re.findall(r"accession-number=([0-9-]{20})", body.decode("latin-1"))


# --- the market


def test_a_day_of_six_thousand_filings_has_what_the_real_one_has() -> None:
    market = Market(7, 6000, 6000)
    filings = market.of_day(TUESDAY)
    assert len(filings) > 6_000
    assert len({each.accession for each in filings}) == len(filings)
    assert 1.2 < sum(len(each.parties) for each in filings) / len(filings) < 2.5
    late = [each for each in filings if each.accepted.hour * 60 + each.accepted.minute > 17 * 60 + 30]
    assert 0.05 < len(late) / len(filings) < 0.4
    assert all((each.filed == TUESDAY) == (each.form in SAME_DAY) for each in late)
    forms = Counter(each.form for each in filings)
    assert {"4", "8-K", "1-A POS", "SCHEDULE 13G", "EFFECT", "UPLOAD", "10-K/A"} <= set(forms)
    # An amendment is accepted before its original, one filing stands under two forms, some texts come late.
    originals = [each for each in filings if each.form == "10-K"]
    assert any(
        amended.accepted < original.accepted and amended.parties == original.parties
        for amended in filings if amended.form == "10-K/A" for original in originals
    )  # fmt: skip
    assert [each.form for each in filings if each.also] == ["SC TO-T/A"]
    assert any(each.text_after for each in filings)
    assert [each.filed for each in filings if each.form == "EFFECT"] == [TUESDAY - timedelta(days=1)]


def test_every_filing_is_found_by_its_number_and_closed_days_have_none(sec: Sec) -> None:
    for day in (TUESDAY, WEDNESDAY):
        for each in sec.market.of_day(day):
            assert sec.market.found(each.accession) == each
    assert sec.market.of_day(date(2026, 9, 19)) == sec.market.of_day(date(2026, 10, 12)) == ()
    assert sec.market.of_day(date(2026, 4, 3))
    assert sec.market.found("0000000001-26-000001") is None


# --- what is seen, and when


def test_the_feed_shows_the_newest_first_each_party_by_itself_and_ends_with_503(sec: Sec) -> None:
    instant, found, start = at(TUESDAY, 18), list[str](), 0
    while (given := feed(sec, instant, start)).status == 200:
        found += numbers(given.body)
        start += 100
    assert given.status == 503
    assert b"<html" in given.body
    shown = [each for each in sec.market.between(date(2026, 9, 10), TUESDAY) if each.shown_at <= instant]
    assert set(found) <= {each.accession for each in shown if not each.quiet}
    assert {
        each.accession for each in sec.market.of_day(TUESDAY) if each.shown_at <= instant and not each.quiet
    } <= set(found)
    assert max(Counter(found).values()) > 1
    accepted = [sec.market.found(number).accepted for number in found]  # type: ignore[union-attr]
    assert accepted == sorted(accepted, reverse=True)
    # Three minutes later the same page holds other entries.
    assert numbers(feed(sec, at(TUESDAY, 18, 30), 0).body) != found[:100]


def test_an_index_is_there_at_night_and_lists_what_was_filed_for_the_day(sec: Sec) -> None:
    path = "/Archives/edgar/daily-index/2026/QTR3/master.20260915.idx"
    before = ask(sec, path, at(TUESDAY, 22, 30))
    assert (before.status, b"AccessDenied" in before.body) == (403, True)
    given = ask(sec, path, at(TUESDAY, 23))
    assert given.status == 200
    head, _, lines = given.body.decode("latin-1").partition("-" * 80 + "\n")
    assert "Last Data Received:    Sep 15, 2026" in head
    listed = {line.rpartition("/")[2].removesuffix(".txt") for line in lines.splitlines()}
    assert listed == {each.accession for each in sec.of_index(TUESDAY)}
    # Filed on Monday evening, it is in Tuesday's; filed on Tuesday evening, it is in Wednesday's.
    evening = [each for each in sec.market.of_day(TUESDAY) if each.filed == WEDNESDAY]
    assert evening
    assert not {each.accession for each in evening} & listed
    tag = given.header("etag")
    assert ask(sec, path, at(TUESDAY, 23), headers={**AGENT, "if-none-match": tag}).status == 304
    saturday = ask(sec, "/Archives/edgar/daily-index/2026/QTR3/master.20260919.idx", at(date(2026, 9, 21), 12))
    assert saturday.status == 403


def test_a_quarter_begins_without_an_index_and_loses_a_row_on_a_saturday(sec: Sec) -> None:
    first = date(2026, 10, 1)
    path = "/Archives/edgar/full-index/2026/QTR4/master.idx"
    assert ask(sec, path, at(first, 20)).status == 403
    assert ask(sec, path, at(first, 23, 30)).status == 200
    gone = sec.of_index(TUESDAY)[3].accession
    sec.switch({"switch": "withdraw", "accession": gone, "at": at(WEDNESDAY, 12).isoformat()})
    third = "/Archives/edgar/full-index/2026/QTR3/master.idx"
    friday, saturday = at(date(2026, 9, 18), 12), at(date(2026, 9, 19), 4)
    assert gone.encode() in ask(sec, third, friday).body
    assert gone.encode() not in ask(sec, third, saturday).body


def test_texts_lists_and_tickers_have_their_forms(sec: Sec) -> None:
    late = next(each for each in sec.market.of_day(TUESDAY) if not each.text_after)
    path = f"/Archives/edgar/data/{late.parties[0].cik}/{late.accession}.txt"
    assert ask(sec, path, late.accepted - timedelta(seconds=1)).status == 403
    given = ask(sec, path, late.accepted)
    assert given.body.startswith(b"<SEC-DOCUMENT>")
    assert f"<ACCEPTANCE-DATETIME>{late.accepted:%Y%m%d%H%M%S}".encode() in given.body
    sec.switch({"switch": "late", "accession": late.accession, "until": at(WEDNESDAY, 12).isoformat()})
    assert ask(sec, path, at(WEDNESDAY, 11)).status == 403
    assert ask(sec, f"/Archives/edgar/data/77/{late.accession}.txt", at(WEDNESDAY, 13)).status == 403
    told = json.loads(ask(sec, "/submissions/CIK0000320193.json", at(TUESDAY, 18), DATA).body)
    assert told["cik"] == "0000320193"
    recent = told["filings"]["recent"]
    assert len({len(values) for values in recent.values()}) == 1
    page = json.loads(ask(sec, f"/submissions/{told['filings']['files'][0]['name']}", at(TUESDAY, 18), DATA).body)
    assert set(page) == set(recent)
    nobody = ask(sec, "/submissions/CIK0000000077.json", at(TUESDAY, 18), DATA)
    assert (nobody.status, b"NoSuchKey" in nobody.body) == (404, True)
    listed = json.loads(ask(sec, "/files/company_tickers_exchange.json", at(TUESDAY, 18)).body)
    assert listed["fields"] == ["cik", "name", "ticker", "exchange"]
    assert Counter(row[3] for row in listed["data"])["NYSE"] == 3_300


# --- who is sent away


def test_who_names_no_contact_or_asks_too_fast_is_sent_away(sec: Sec) -> None:
    given = ask(sec, "/files/company_tickers_exchange.json", at(TUESDAY, 18), headers={"user-agent": "python-httpx"})
    assert given.status == 403
    assert b"undeclared automated tool" in given.body
    sec.switch({"switch": "limit", "per_second": 10})
    instant = at(TUESDAY, 18)
    answers = [feed(sec, instant).status for _ in range(12)]
    assert answers == [200] * 10 + [403] * 2
    assert feed(sec, instant + timedelta(minutes=9)).status == 403
    assert b"Request Rate Threshold Exceeded" in feed(sec, instant + timedelta(minutes=9)).body
    assert feed(sec, instant + timedelta(minutes=11)).status == 200


def test_switches_that_cannot_be_read_change_nothing_and_say_what_would_do(sec: Sec) -> None:
    before = sec.view()
    for order, words in (
        ({"switch": "nonsense"}, "it has block, break"),
        ({"switch": "limit", "per_second": "many"}, "whole number"),
        ({"switch": "block", "until": "soon"}, "ISO instant"),
        ({"switch": "delay", "day": "soon"}, "must be a date"),
        ({"switch": "late", "accession": "1"}, "number of a filing"),
        ({"switch": "move", "ticker": "TSLA"}, "given to whom"),
    ):
        with pytest.raises(SwitchError, match=words):
            sec.switch(order)
    assert sec.view() == before
    sec.switch({"switch": "filings", "a_day": 6000})
    assert sec.view()["filings_a_day"] == 6000
    sec.reset()
    assert sec.view() == before
