"""DART's documents of periodic reports, kept complete: what is due follows from the list and from what is held."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

from include.contract import Ask, CycleStatus, Mode
from include.sandbox.dart_filings import Filing
from include.sources.dart import docs
from tests.sources.answers import FIXTURES, answer
from tests.sources.dart_desk import LISTED, SyncDesk, at, lacks_of_document, sync_desk
from tests.sources.places import copy_ledger

__all__ = ["sync_desk"]

DOCS = "dart.docs"
TUESDAY = date(2026, 9, 15)
WEDNESDAY, THURSDAY = TUESDAY + timedelta(days=1), TUESDAY + timedelta(days=2)
HALF = "반기보고서 (2026.06)"
TABLES = ("filings.dart_documents", "filings.dart_docs", "filings.dart_doc_tables")


def add(here: SyncDesk, when: Any, title: str, company: int = 0, **more: Any) -> str:
    """File a report at an instant; returns its receipt number."""
    named = [each for each in here.beside.filings.listed if each.market in "YK"][company]
    number = f"{when:%Y%m%d}0090{len(here.beside.filings.events.added):02}"
    order = {"title": title, "corp_code": named.corp_code, "market": named.market, "rcept_no": number}
    here.switch("add", at=when.isoformat(), kind="A", **(order | more))
    here.switch("document", rcept_no=number, at=when.isoformat())
    return number


def filing(here: SyncDesk, number: str) -> Filing:
    return next(each for each in here.beside.filings.events.added if each.rcept_no == number)


def states(here: SyncDesk) -> dict[str, str]:
    return {row["rcept_no"]: row["state"] for row in here.place.sql("select * from filings.dart_document_versions")}


def asked(here: SyncDesk, *numbers: str) -> list[str]:
    """The documents that were asked for, in order, of these alone."""
    rows = here.running.requests(host="opendart.fss.or.kr", kind="document")
    return [number for row in rows for number in numbers if number in str(row)]


def lacks(here: SyncDesk, number: str) -> list[str]:
    return lacks_of_document(here.place, filing(here, number))


def test_reports_are_held_as_they_were_written_and_corrections_stand_beside_them(
    sync_desk: Callable[..., SyncDesk],
) -> None:
    here = sync_desk(at(TUESDAY, "08:00"), companies=16)
    first = add(here, at(TUESDAY, "09:00"), HALF)
    annual = add(here, at(TUESDAY, "09:10"), "사업보고서 (2025.12)", 1)
    late = add(here, at(TUESDAY, "09:20"), HALF, 2)
    never = add(here, at(TUESDAY, "09:21"), HALF, 3)
    broken = add(here, at(TUESDAY, "09:22"), HALF, 4)
    withdrawn = add(here, at(TUESDAY, "09:23"), HALF, 5)
    extension = add(here, at(TUESDAY, "09:24"), "반기보고서제출기한연장신고서 (2026.06)", 6)
    here.switch("document", rcept_no=late, at=at(WEDNESDAY, "10:00").isoformat())
    here.switch("document", rcept_no=never, at=at(TUESDAY + timedelta(days=400), "10:00").isoformat())
    here.switch("cut", rcept_no=broken)
    here.switch("withdraw", rcept_no=withdrawn, at=at(TUESDAY, "11:00").isoformat())

    here.poll(LISTED, at(TUESDAY, "14:50"))
    verdict = here.poll(DOCS, at(TUESDAY, "15:00"))
    assert verdict.status is CycleStatus.SUCCESS, verdict.words
    state = states(here)
    assert {state[first], state[annual]} == {"held"}
    assert (state[late], state[never], state[broken], state[withdrawn]) == ("no_file", "no_file", "broken", "due")
    assert extension not in state
    assert (lacks(here, first), lacks(here, annual)) == ([], [])
    # The audit report comes first in the archive of an annual one, and is larger.
    (document,) = here.place.sql("select * from filings.dart_documents where rcept_no = %s", annual)
    assert document["main_file"] == f"{annual}.xml"
    assert document["other_files"] == [[f"{annual}_00760.xml", "감사보고서"]]
    assert (document["report_type"], document["year"], document["is_correction"]) == (
        "사업보고서 (2025.12)",
        "2025",
        False,
    )
    (refused,) = here.place.sql("select reason from collect.quarantine where stream = %s", DOCS)
    assert "cannot be read" in refused["reason"]

    # What is held is not asked for again, nor what was withdrawn; what lacks is, and a correction is.
    all_of_them = [first, annual, late, never, broken]
    assert sorted(asked(here, *all_of_them, withdrawn, extension)) == all_of_them
    correction = add(here, at(WEDNESDAY, "09:00"), f"[기재정정]{HALF}", corrects=first)
    here.switch("cut", rcept_no=broken, **{"is": False})
    here.poll(LISTED, at(WEDNESDAY, "14:50"))
    verdict = here.poll(DOCS, at(WEDNESDAY, "15:00"))
    assert verdict.status is CycleStatus.SUCCESS, verdict.words
    all_of_them.append(correction)
    assert sorted(asked(here, *all_of_them)[5:]) == [late, never, broken, correction]
    assert [number for number in (first, annual, late, broken, correction) if states(here)[number] != "held"] == []
    assert (lacks(here, correction), lacks(here, late)) == ([], [])
    assert lacks(here, first) == []
    versions = {row["rcept_no"]: row for row in here.place.sql("select * from filings.dart_document_versions")}
    assert versions[first]["superseded_by"] == correction
    assert [versions[each]["is_current"] for each in (first, correction, withdrawn)] == [False, True, False]
    current = {row["rcept_no"] for row in here.place.sql("select distinct rcept_no from filings.dart_current_docs")}
    assert current & {*all_of_them} == {annual, late, broken, correction}

    # Ten days on, what is not there was asked for less and less often, and everything stands as it was.
    rows = "select * from {} where rcept_no = any(%s) order by 1, 2"
    before = {table: here.place.sql(rows.format(table), all_of_them) for table in TABLES}
    for day in range(2, 12):
        for hour in ("03:00", "15:00"):
            here.poll(DOCS, at(TUESDAY + timedelta(days=day), hour))
    assert asked(here, *all_of_them)[9:].count(never) == len(asked(here, *all_of_them)[9:]) <= 6
    (row,) = here.place.sql("select tries from filings.dart_document_versions where rcept_no = %s", never)
    assert row["tries"] == asked(here, *all_of_them).count(never)
    assert {table: here.place.sql(rows.format(table), all_of_them) for table in TABLES} == before


def test_the_past_is_found_by_the_quarters_list_and_poll_backfill_and_replay_agree(
    sync_desk: Callable[..., SyncDesk], place: Callable[[], Any]
) -> None:
    here = sync_desk(at(TUESDAY, "08:00"), companies=16)
    numbers = [add(here, at(TUESDAY, "09:00") + timedelta(minutes=n), HALF, n) for n in range(6)]
    numbers.append(add(here, at(WEDNESDAY, "09:00"), f"[기재정정]{HALF}"))
    numbers.append(add(here, at(date(2026, 5, 15), "09:00"), "분기보고서 (2026.03)", 1))
    for day in (date(2026, 5, 15), TUESDAY, WEDNESDAY):
        here.poll(LISTED, at(day, "14:50"))
    here.poll(DOCS, at(WEDNESDAY, "15:00"))
    by_poll = here.place.tables(here.stream(DOCS))
    held_by_poll = {row["rcept_no"] for row in by_poll["filings.dart_documents"]}
    assert set(numbers[:7]) <= held_by_poll
    assert numbers[7] not in held_by_poll

    span = (date(2026, 1, 1), date(2026, 6, 30))
    listed, before = here.asked("list"), asked(here, *held_by_poll)
    progress = here.run(DOCS, Mode.BACKFILL, *span)
    assert (progress.failed, progress.done) == (0, 2)
    # Only the report that no window looked for: what is held is not asked for again.
    assert asked(here, *held_by_poll) == before
    assert asked(here, numbers[7]) == [numbers[7]]
    assert here.asked("list") == listed + 2
    whole = here.place.tables(here.stream(DOCS))
    assert set(numbers) <= {row["rcept_no"] for row in whole["filings.dart_documents"]}

    there = place()
    there.at(here.place.now())
    there.sandbox_url = here.place.sandbox_url
    elsewhere = SyncDesk(there, here.running, here.beside)
    elsewhere.run(DOCS, Mode.BACKFILL, *span)
    assert there.tables(here.stream(DOCS)) == whole
    replayed = place()
    replayed.at(here.place.now())
    replayed.raw = here.place.raw
    copy_ledger(here.place.url, replayed.url)
    requests = len(here.running.requests())
    replayed.do(here.stream(DOCS), Mode.REPLAY, *span)
    assert replayed.tables(here.stream(DOCS), "sent_at", "fetch_id") == here.place.tables(
        here.stream(DOCS), "sent_at", "fetch_id"
    )
    assert len(here.running.requests()) == requests

    # One company's past, by its own list.
    corp = filing(here, numbers[1]).company.corp_code
    alone = place()
    alone.at(here.place.now())
    alone.sandbox_url = here.place.sandbox_url
    SyncDesk(alone, here.running, here.beside).run(DOCS, Mode.BACKFILL, *span, keys=(corp,))
    found = {row["rcept_no"] for row in alone.sql("select rcept_no from filings.dart_documents")}
    assert found == {row["rcept_no"] for row in whole["filings.dart_documents"] if row["corp_code"] == corp}
    assert numbers[1] in found


def test_a_used_up_quota_ends_a_window_in_good_order_and_what_it_cut_off_comes_first(
    sync_desk: Callable[..., SyncDesk],
) -> None:
    here = sync_desk(at(TUESDAY, "08:00"), companies=16)
    old = [add(here, at(TUESDAY, "09:00") + timedelta(minutes=n), HALF, n) for n in range(8)]
    here.poll(LISTED, at(TUESDAY, "14:50"))
    # What the list has used, what is left to it, and three documents.
    used = len(here.running.requests(host="opendart.fss.or.kr"))
    here.quota["requests"] = used + 4_000 + 3
    here.keys = here.keys[:1]
    verdict = here.poll(DOCS, at(TUESDAY, "15:00"))
    assert (verdict.status, here.asked("document")) == (CycleStatus.BUDGET_EXHAUSTED, 3), verdict.words
    here.quota["requests"] = 20_000
    new = add(here, at(WEDNESDAY, "09:00"), HALF, 9)
    here.poll(LISTED, at(WEDNESDAY, "14:50"))
    verdict = here.poll(DOCS, at(WEDNESDAY, "15:00"))
    assert verdict.status is CycleStatus.SUCCESS, verdict.words
    assert asked(here, *old, new) == [*reversed(old), new]


def test_keys_name_all_of_a_report_and_a_quarter_has_its_reports() -> None:
    report = docs.Report("20260915000777", "00999991", "0015G0", TUESDAY, "반기보고서", "2026.06", True)
    assert docs.read_key(report.key) == report
    assert docs.read_key(report.key.replace("0015G0", "-")).stock is None  # type: ignore[union-attr]
    assert docs.read_key(report.key.replace("2026-09-15", "2026-02-30")) is None
    assert set(docs.periods.ENDS) == {"11013", "11012", "11014", "11011"}
    quarters = [docs.received(docs.Period(2025, code)) for code in docs.periods.ENDS]
    assert [f"{first:%m%d}-{last:%m%d}" for first, last in quarters] == [
        "0401-0630",
        "0701-0930",
        "1001-1231",
        "0101-0331",
    ]
    assert quarters[-1][1].year == 2026


def test_a_list_names_the_reports_that_hold_and_nothing_that_begins_like_one() -> None:
    request = docs.of_key("all/list/2026.11012", Ask(Mode.POLL))
    assert request is not None
    assert dict(request.params)["bgn_de"] == "20260701"
    asked = docs.follow(request, answer(request, (FIXTURES / "dart" / "docs_list.json").read_bytes()))
    # The newest first: no notice of an extension, no title without a period or code, nothing withdrawn; and
    # one whose company is no longer listed is as good as any.
    assert [each.key for each in asked] == [
        "00999991/20260820000102/0015G0/2026-08-20/half-2026.06-correction",
        "00999991/20260815000107/0015G0/2026-08-15/quarter-2026.06",
        "00999993/20260814000108/012345/2026-08-14/half-2026.06",
        "00999991/20260814000101/0015G0/2026-08-14/half-2026.06",
    ]
    known = replace(request, about={**request.about, "held": "20260820000102 20260814000101"})
    asked = docs.follow(known, answer(known, (FIXTURES / "dart" / "docs_list.json").read_bytes()))
    assert [each.unit.split("/")[1] for each in asked] == ["20260815000107", "20260814000108"]
