from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from include.sandbox.exchange import Answer, Call, SwitchError, World
from include.sandbox.finra import Finra
from tests.fixtures_sandbox import NEW_YORK, TUESDAY_EVENING, MovableClock, RunningSandbox, Start

DAILY = "/cdn.finra.org/equity/regsho/daily"


def path(day: str, prefix: str = "CNMS") -> str:
    return f"{DAILY}/{prefix}shvol{day}.txt"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=NEW_YORK)


@pytest.fixture
def shelf(tmp_path: Path) -> Finra:
    """The stand-in itself, asked without a server."""
    return Finra(World(tmp_path, companies=20))


def asked(shelf: Finra, day: str, prefix: str) -> Answer:
    plain = path(day, prefix).removeprefix("/cdn.finra.org")
    return shelf.answer(Call("GET", "cdn.finra.org", plain, "", {}, b"", TUESDAY_EVENING))


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def finra(sandbox: Start, clock: MovableClock) -> RunningSandbox:
    return sandbox(clock=clock)


def test_a_file_appears_between_1717_and_1718_in_new_york(finra: RunningSandbox, clock: MovableClock) -> None:
    clock.at = at("2026-09-15T17:16:59")
    assert finra.get(path("20260915")).status_code == 403
    clock.at = at("2026-09-15T17:18:00")
    answer = finra.get(path("20260915"))
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain"
    # Summer: four hours before Greenwich.
    assert answer.headers["last-modified"].startswith("Tue, 15 Sep 2026 21:17:")
    clock.at = at("2026-12-15T19:00:00")
    assert finra.get(path("20261215")).headers["last-modified"].startswith("Tue, 15 Dec 2026 22:17:")


@pytest.mark.parametrize(
    ("day", "prefix"),
    [
        ("20260913", "CNMS"),  # a Sunday
        ("20260907", "CNMS"),  # Labor Day
        ("20250109", "CNMS"),  # a day of mourning
        ("20260916", "CNMS"),  # tomorrow
        ("99991231", "CNMS"),
        ("20180731", "CNMS"),  # before its history
        ("20180907", "FNQC"),
        ("20091030", "FNSQ"),
        ("20260915", "XXXX"),
        ("20260231", "CNMS"),  # no day at all
    ],
)
def test_what_is_not_there_is_refused_like_everything_else(shelf: Finra, day: str, prefix: str) -> None:
    answer = asked(shelf, day, prefix)
    assert answer.status == 403
    assert answer.header("Content-Type") == "application/xml"
    assert b"<Code>AccessDenied</Code>" in answer.body
    assert answer.header("ETag") is None


@pytest.mark.parametrize(
    ("day", "prefix"),
    [("20180801", "CNMS"), ("20180910", "FNQC"), ("20091102", "FNSQ"), ("20091102", "FORF"), ("20251128", "CNMS")],
)
def test_history_begins_on_each_facilitys_first_day(shelf: Finra, day: str, prefix: str) -> None:
    assert asked(shelf, day, prefix).status == 200


def test_a_held_file_is_answered_304_by_tag_and_by_date(finra: RunningSandbox) -> None:
    first = finra.get(path("20260915"))
    for held in (
        {"If-None-Match": first.headers["etag"]},
        {"If-None-Match": f'"other", {first.headers["etag"]}'},
        {"If-Modified-Since": first.headers["last-modified"]},
        {"If-None-Match": first.headers["etag"], "If-Modified-Since": "Mon, 01 Jan 2001 00:00:00 GMT"},
    ):
        again = finra.get(path("20260915"), headers=held)
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == first.headers["etag"]
    for stale in (
        {"If-None-Match": '"other"'},
        {"If-None-Match": '"other"', "If-Modified-Since": first.headers["last-modified"]},
        {"If-Modified-Since": "Mon, 14 Sep 2026 00:00:00 GMT"},
        {"If-Modified-Since": "yesterday"},
    ):
        assert finra.get(path("20260915"), headers=stale).status_code == 200


def test_a_revision_comes_at_its_instant_and_can_be_taken_back(finra: RunningSandbox, clock: MovableClock) -> None:
    finra.switch("finra", "revise", day="2026-09-15", at="2026-09-16T10:00:00-04:00", revision=1)
    finra.switch("finra", "revise", day="2026-09-15", at="2026-09-17T10:00:00-04:00", revision=0)
    first = finra.get(path("20260915"))
    clock.at = at("2026-09-16T10:00:00")
    second = finra.get(path("20260915"), headers={"If-None-Match": first.headers["etag"]})
    assert second.status_code == 200
    assert second.content != first.content
    assert second.headers["last-modified"] == "Wed, 16 Sep 2026 14:00:00 GMT"
    clock.at = at("2026-09-17T10:00:00")
    third = finra.get(path("20260915"), headers={"If-None-Match": second.headers["etag"]})
    assert third.status_code == 200
    assert third.content == first.content
    assert third.headers["last-modified"] == "Thu, 17 Sep 2026 14:00:00 GMT"


def test_a_revision_can_withdraw_rows(finra: RunningSandbox, clock: MovableClock) -> None:
    before = finra.get(path("20260915")).text.splitlines()
    told = finra.switch("finra", "revise", day="2026-09-15", at=clock.at.isoformat(), revision=0, withdraw=3)
    gone = set(told["finra"]["revised"]["CNMS 2026-09-15"][0]["withdrawn"])
    after = finra.get(path("20260915")).text.splitlines()
    assert len(gone) == 3
    assert [line for line in before[:-1] if line.split("|")[1] not in gone] == after[:-1]


def test_publication_can_be_late_or_never(finra: RunningSandbox, clock: MovableClock) -> None:
    finra.switch("finra", "delay", day="2026-09-15", facility="CNMS", minutes=180)
    assert finra.get(path("20260915")).status_code == 403
    assert finra.get(path("20260915", "FNYX")).status_code == 200
    clock.at = at("2026-09-15T20:17:00")
    assert finra.get(path("20260915")).status_code == 200
    finra.switch("finra", "delay", day="2026-09-14", until=None)
    assert finra.get(path("20260914")).status_code == 403


def test_a_day_can_close_at_short_notice_or_open_against_the_calendar(finra: RunningSandbox) -> None:
    finra.switch("finra", "close", day="2026-09-15")
    finra.switch("finra", "open", day="2026-09-13")
    assert finra.get(path("20260915")).status_code == 403
    assert finra.get(path("20260913")).status_code == 200
    finra.control("DELETE", "finra")
    assert finra.get(path("20260915")).status_code == 200
    assert finra.get(path("20260913")).status_code == 403


def test_a_damaged_file_is_sent_whole_with_validators_of_its_own(finra: RunningSandbox) -> None:
    good = finra.get(path("20260915"))
    finra.switch("finra", "damage", day="2026-09-15", facility="CNMS", how="cut")
    bad = finra.get(path("20260915"))
    assert bad.status_code == 200
    assert good.content.startswith(bad.content)
    assert bad.headers["etag"] != good.headers["etag"]
    finra.switch("finra", "damage", day="2026-09-15", how=None)
    assert finra.get(path("20260915")).content == good.content


@pytest.mark.parametrize(
    ("order", "word"),
    [
        ({"switch": "explode"}, "no switch"),
        ({"switch": "close", "day": "yesterday"}, "must be a date"),
        ({"switch": "delay", "day": "2026-09-15", "facility": "CNMS"}, "minutes"),
        ({"switch": "delay", "day": "2026-09-15", "facility": "cnms", "minutes": 1}, "facility"),
        ({"switch": "revise", "day": "2026-09-15", "at": "2026-09-16T10:00:00"}, "zone"),
        ({"switch": "damage", "day": "2026-09-15", "how": "badly"}, "trailer_off"),
    ],
)
def test_a_switch_that_cannot_be_read_is_refused_in_words(shelf: Finra, order: dict[str, Any], word: str) -> None:
    with pytest.raises(SwitchError, match=word):
        shelf.switch(order)
    assert shelf.view() == Finra(World(Path())).view()


def test_a_refused_switch_is_answered_400_with_its_sentence(finra: RunningSandbox) -> None:
    for order, word in (
        ({"upstream": "finra", "switch": "x"}, "no switch"),
        ({"upstream": "x"}, "one of"),
        ([], "one of"),
    ):
        answer = httpx.post(f"{finra.url}/_sandbox/switches", json=order)
        assert answer.status_code == 400
        assert word in answer.json()["error"]


def test_two_sandboxes_of_one_seed_publish_the_same(sandbox: Start) -> None:
    one, other = sandbox(), sandbox()
    first, second = one.get(path("20260915")), other.get(path("20260915"))
    assert first.content == second.content
    assert first.headers["last-modified"] == second.headers["last-modified"]
    assert sandbox(seed=8).get(path("20260915")).content != first.content
