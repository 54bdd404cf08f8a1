"""What is in the filings of the SEC, collected from its stand-in: from the feed to documents, headers and facts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from include import registry
from include.contract import AnswerError, Ask, CycleStatus, Mode, Outcome, ParseError, Stream, Unit
from include.engine import windows
from include.sandbox import sec_filings
from include.sandbox.sec_market import Filing
from include.sources.sec import filing_facts, filing_streams, filing_tables, sections
from include.sources.sec.filing_plans import Choice
from include.sources.sec.universe import UniverseUnfit, policy
from tests.fixtures_sandbox import Start
from tests.sources.answers import FIXTURES, answer
from tests.sources.places import Place, copy_ledger
from tests.sources.test_sec import TUESDAY, WEDNESDAY, Desk, at, quick

CHAIN = ("sec.submissions", "sec.filings", "sec.xbrl_facts", "sec.document_headers")
MINE = CHAIN[1:]


@pytest.fixture
def desk(place: Callable[[], Place], sandbox: Start) -> Callable[..., Desk]:
    def make(companies: int = 16) -> Desk:
        made = place()
        made.at(at(TUESDAY, 6))
        running = sandbox(clock=made.now, companies=companies)
        made.sandbox_url = running.url
        return Desk(made, running)

    return make


def tick(here: Desk, day: date, hour: int, minute: int = 0) -> None:
    """One run of the DAG: the chain in its order."""
    for name in CHAIN:
        verdict = here.poll(name, max(at(day, hour, minute, 20), here.place.now()))
        assert verdict is None or verdict.status is CycleStatus.SUCCESS, verdict.words


def rows_of(place: Place, stream: Stream, accessions: Container[str]) -> dict[str, list[Any]]:
    """The rows of a stream's tables for some filings."""
    return {
        name: [row for row in rows if row["accession"] in accessions] for name, rows in place.tables(stream).items()
    }


def test_a_days_filings_are_read_whole_and_poll_backfill_and_replay_agree(
    desk: Callable[..., Desk], place: Callable[[], Place]
) -> None:
    here = desk(20)
    tick(here, TUESDAY, 22, 10)
    asked = here.asked("text")
    # What was not there at once, texts and instances that EDGAR had not made, is asked for by the next ticks.
    tick(here, WEDNESDAY, 6)
    tick(here, WEDNESDAY, 6, 15)
    listed = {each.accession: each for each in here.sec.of_index(TUESDAY) if each.filed == TUESDAY}
    texts = {row["accession"]: row for row in here.place.sql("select * from filings.sec_texts")}
    assert set(listed) <= set(texts)
    assert asked >= len(listed)
    for table in ("sec_headers", "sec_xbrl"):
        assert here.accessions(table) == set(texts)
    states = {row["accession"]: row["state"] for row in here.place.sql("select * from filings.sec_xbrl_states")}
    for accession, filing in listed.items():
        has_facts = filing.form in sec_filings._WITH_FACTS or filing.form == "497"
        assert states[accession] == ("facts" if has_facts else "none"), filing.form
    late = [each for each in listed.values() if sec_filings.is_late(each)]
    assert late
    extracted = here.place.sql("select accession from filings.sec_xbrl_instances where unit like '%%/instance'")
    assert {each.accession for each in late} <= {row["accession"] for row in extracted}
    _check_headers(here, listed)

    filled = place()
    filled.at(at(WEDNESDAY, 7))
    filled.sandbox_url = here.place.sandbox_url
    here_again = Desk(filled, here.running)
    for name in MINE:
        here_again.backfill(name, TUESDAY, TUESDAY)
    for name in MINE:
        stream = registry.stream(name)
        expected, found = rows_of(here.place, stream, listed), rows_of(filled, stream, listed)
        for table in stream.tables:
            assert expected[table.qualified], table.qualified
            assert found[table.qualified] == expected[table.qualified], table.qualified

    replayed = place()
    replayed.at(at(WEDNESDAY, 8))
    replayed.raw = here.place.raw
    copy_ledger(here.place.url, replayed.url)
    before = here.asked()
    for name in MINE:
        stream = quick(name)
        windows.declare(replayed.url, (stream,))
        replayed.do(stream, Mode.REPLAY, TUESDAY - timedelta(days=10), WEDNESDAY)
        again, first = (p.tables(stream, "sent_at", "fetch_id") for p in (replayed, here.place))
        for table in stream.tables:
            assert again[table.qualified] == first[table.qualified], table.qualified
    assert here.asked() == before


def _check_headers(here: Desk, listed: dict[str, Filing]) -> None:
    parties = here.place.sql("select * from filings.sec_header_parties order by accession, party")
    headers = {row["accession"]: row for row in here.place.sql("select * from filings.sec_headers")}
    for accession, filing in listed.items():
        header = headers[accession]
        assert (header["form"], header["filed_date"]) == (filing.form, filing.filed)
        assert header["accepted_at"] == filing.accepted
        found = [(row["cik"], row["name"]) for row in parties if row["accession"] == accession]
        assert found == [(party.cik, party.name) for party in filing.parties]
    assert not here.place.sql("select * from filings.sec_header_label_counts")


def test_what_headers_and_facts_read_is_not_asked_for_again(desk: Callable[..., Desk]) -> None:
    here = desk(10)
    tick(here, TUESDAY, 17)
    fetched = here.place.sql("select stream, count(*) as n from collect.fetches group by stream")
    by_stream = {row["stream"]: row["n"] for row in fetched}
    assert by_stream["sec.document_headers"] == by_stream["sec.filings"]
    objects = here.place.sql(
        "select h.sha256 from collect.fetches h where h.stream = 'sec.document_headers' and not exists"
        " (select 1 from collect.fetches f where f.stream = 'sec.filings' and f.sha256 = h.sha256)"
    )
    assert objects == []


def test_documents_can_be_cut_out_of_the_stored_submission_by_their_place(desk: Callable[..., Desk]) -> None:
    here = desk(10)
    tick(here, TUESDAY, 17)
    rows = here.place.sql(
        "select d.*, f.sha256 as submission from filings.sec_documents d join collect.fetches f using (fetch_id)"
    )
    assert rows
    for row in rows:
        content = here.place.raw.body(bytes(row["submission"])).read()
        part = content[row["text_start"] : row["text_start"] + row["text_length"]]
        if not row["is_uuencoded"]:
            assert (len(part), row["sha256"]) == (row["size"], hashlib.sha256(part).hexdigest())


def test_a_dead_stream_of_facts_holds_no_other_up(desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is a stream of its own, with its own cycles and failures."""
    here = desk(10)

    def broken(unit: Unit) -> Any:
        raise RuntimeError("a parser's own fault")

    stream = replace(quick("sec.xbrl_facts"), parse=broken)
    for name in ("sec.submissions", "sec.filings"):
        here.poll(name, at(TUESDAY, 17, 0, 20))
    monkeypatch.setattr("tests.sources.test_sec.quick", lambda name: stream if name == stream.name else quick(name))
    verdict = here.poll("sec.xbrl_facts", at(TUESDAY, 17, 0, 20))
    assert verdict is not None
    assert verdict.status is not CycleStatus.SUCCESS
    verdict = here.poll("sec.document_headers", at(TUESDAY, 17, 0, 20))
    assert verdict is not None
    assert verdict.outcome is Outcome.SUCCESS
    assert here.accessions("sec_headers") == here.accessions("sec_texts")
    broken_ones = here.place.sql("select distinct state from filings.sec_xbrl_states")
    assert [row["state"] for row in broken_ones] == ["broken"]


def test_a_field_that_goes_missing_is_told_and_so_is_its_return(
    desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pain: a renamed tag; the filings are kept, the label is counted, and somebody is told at once."""
    here, text = desk(30), sec_filings.text
    key = "missing-values/sec.document_headers/sec_headers.accepted_at"
    monkeypatch.setattr(sec_filings, "text", lambda filing: text(filing).replace(b"<ACCEPTANCE-", b"<ARRIVED-"))
    tick(here, TUESDAY, 20)
    (told,) = here.place.sql("select * from ops.incidents where incident_key = %s", key)
    assert told["closed_at"] is None
    assert "accepted_at is missing in" in told["text"]
    rows = here.place.sql("select accepted_at, unknown_labels from filings.sec_headers")
    assert {(row["accepted_at"], row["unknown_labels"]) for row in rows} == {(None, 1)}
    counts = here.place.sql("select label, spelling, times from filings.sec_header_label_counts")
    assert counts == [{"label": "ARRIVED-DATETIME", "spelling": "unknown", "times": len(rows)}]
    monkeypatch.setattr(sec_filings, "text", text)
    tick(here, WEDNESDAY, 20)
    (told,) = here.place.sql("select * from ops.incidents where incident_key = %s", key)
    assert told["closed_at"] is not None


# --- plans and policies


def chosen(configured: dict[str, Any]) -> tuple[Stream, Stream, Stream]:
    return filing_streams.streams(Choice(policy(configured, [])))


KEY = "0000950170-26-000500/320193/2026-09-15"
OTHER = "0000950170-26-000501/1018724/2026-09-15"


def test_forms_and_tiers_choose_what_is_fetched() -> None:
    subjects = (f"{KEY} 10-Q/A", f"{OTHER} 4")
    ask = Ask(Mode.POLL, subjects=subjects)
    everything, _, _ = chosen({})
    assert len(list(everything.plan(ask))) == 2
    quarterly, _, _ = chosen({"forms": ["10-Q"]})
    assert [request.key for request in quarterly.plan(ask)] == [KEY]
    own, _, _ = chosen({"documents": "mine", "lists": {"mine": [{"cik": 1018724}]}})
    assert [request.key for request in own.plan(ask)] == [OTHER]
    nasdaq, _, _ = chosen({"documents": "nasdaq"})
    assert nasdaq.subjects is not None
    assert nasdaq.subjects.flag == "is_nasdaq"
    with pytest.raises(UniverseUnfit, match="forms must be all, or a list"):
        policy({"forms": "10-Q"}, [])


def test_a_filing_is_asked_for_once_whatever_it_was_listed_under() -> None:
    twice = KEY.replace("/320193/", "/1018724/")
    filings, facts, headers = chosen({})
    for stream in (filings, facts, headers):
        (request,) = stream.plan(Ask(Mode.POLL, subjects=(f"{KEY} 10-Q", f"{twice} 10-Q"), pending=(KEY,)))
        assert request.key == KEY


def test_the_index_of_a_day_leads_to_each_filing_once_and_keys_limit_it() -> None:
    content = (
        b"Description: Daily Index\n\nCIK|Company Name|Form Type|Date Filed|File Name\n" + b"-" * 80 + b"\n"
        b"320193|Apple Inc.|SC TO-T/A|20260915|edgar/data/320193/0000950170-26-000500.txt\n"
        b"1018724|AMAZON|SC TO-T/A|20260915|edgar/data/1018724/0000950170-26-000500.txt\n"
        b"1018724|AMAZON|SCHEDULE 13D/A|20260915|edgar/data/1018724/0000950170-26-000500.txt\n"
        b"789019|MICROSOFT|8-K|20260915|edgar/data/789019/0000950170-26-000502.txt\n"
    )
    filings, facts, _ = chosen({})
    for stream in (filings, facts):
        (asked,) = stream.plan(Ask(Mode.BACKFILL, sessions=(TUESDAY,)))
        assert asked.kind == "list"
        found = [request.unit.partition("/")[0] for request in stream.follow(asked, answer(asked, content))]
        assert sorted(found) == ["0000950170-26-000500", "0000950170-26-000502"]
    for keys, expected in (
        (("789019",), ["0000950170-26-000502"]),
        (("0000950170-26-000500",), ["0000950170-26-000500"]),
    ):
        (asked,) = filings.plan(Ask(Mode.BACKFILL, sessions=(TUESDAY,), keys=keys))
        found = [request.unit.partition("/")[0] for request in filings.follow(asked, answer(asked, content))]
        assert found == expected
    (single,) = filings.plan(Ask(Mode.BACKFILL, sessions=(TUESDAY,), keys=(KEY,)))
    assert single.key == KEY


def test_a_cut_text_is_asked_for_again_and_then_kept_and_told() -> None:
    filings, _, _ = chosen({})
    (request,) = filings.plan(Ask(Mode.POLL, pending=(KEY,)))
    body = (FIXTURES / "sec" / "submission_cut.txt").read_bytes()
    last = replace(answer(request, body), tries=3)
    assert filings.classify(last) == "data"
    parsed = filings.parse(Unit(request.unit, request.session_date, (last,)))
    (text,) = [row for batch in parsed.batches if batch.table is filing_tables.TEXTS for row in batch.rows]
    assert dict(zip(filing_tables.TEXTS.column_names, text, strict=True))["is_whole"] is False
    assert any("cut off" in each.reason for each in parsed.rejected)


def test_a_text_that_is_another_filings_is_asked_for_again_and_nothing_of_it_is_taken() -> None:
    body = (FIXTURES / "sec" / "submission.txt").read_bytes()
    tags = (FIXTURES / "sec" / "submission_tags.nc").read_bytes()
    for stream in chosen({}):
        (request,) = stream.plan(Ask(Mode.POLL, pending=(OTHER,)))
        for given in (answer(request, body), answer(request, tags)):
            with pytest.raises(AnswerError, match=r"the text says that it is .*, not 0000950170-26-000501") as refusal:
                stream.classify(given)
            assert refusal.value.may_pass
            with pytest.raises(ParseError, match="not 0000950170-26-000501"):
                stream.parse(Unit(request.unit, request.session_date, (given,)))


def test_a_header_that_was_cut_gives_no_part_of_a_name() -> None:
    _, _, headers = chosen({})
    body = (FIXTURES / "sec" / "submission.txt").read_bytes()
    (request,) = headers.plan(Ask(Mode.POLL, pending=(KEY,)))
    whole = body.index(b"</SEC-HEADER>")
    for cut in range(200, whole, whole // 8):
        with pytest.raises(ParseError, match="its header does not end"):
            headers.parse(Unit(request.unit, request.session_date, (answer(request, body[:cut]),)))
    for enough in (body[: whole + 20], body):
        headers.parse(Unit(request.unit, request.session_date, (answer(request, enough),)))


def test_an_inline_page_without_its_instance_leads_to_it_and_is_not_taken_for_no_xbrl() -> None:
    """Pain: the instance is made after acceptance; its absence is not "no XBRL"."""
    _, facts, _ = chosen({})
    (request,) = facts.plan(Ask(Mode.POLL, pending=(OTHER,)))
    given = answer(request, (FIXTURES / "sec" / "submission_late.txt").read_bytes())
    (instance,) = facts.follow(request, given)
    assert instance.url.startswith("https://www.sec.gov/Archives/edgar/data/1018724/000095017026000501/")
    assert instance.url.endswith("_htm.xml")
    assert facts.classify(answer(instance, (FIXTURES / "sec" / "access_denied.xml").read_bytes(), 403)) == "not_yet"
    (row,) = [row for batch in facts.parse(Unit(request.unit, TUESDAY, (given,))).batches for row in batch.rows]
    assert row[2] == "not_converted"
    content = (FIXTURES / "sec" / "instance.xml").read_bytes()
    parsed = filing_facts.parse(Unit(instance.unit, instance.session_date, (answer(instance, content),)))
    found = {batch.table.name: list(batch.rows) for batch in parsed.batches}
    assert found["sec_xbrl"] == []
    assert len(found["sec_xbrl_facts"]) > 3
    assert found["sec_xbrl_instances"][0][3] is True


def test_what_is_behind_the_facts_is_there_whatever_is_read_first() -> None:
    _, facts, _ = chosen({})
    (request,) = facts.plan(Ask(Mode.POLL, pending=("0000950170-26-000503/320193/2026-09-15",)))
    given = answer(request, (FIXTURES / "sec" / "submission_mail.txt").read_bytes())
    parsed = facts.parse(Unit(request.unit, TUESDAY, (given,)))
    counts = {
        batch.table.name: len(list(batch.rows)) for batch in reversed(parsed.batches) if "facts" not in batch.table.name
    }
    assert counts == {"sec_xbrl_instances": 1, "sec_xbrl_footnotes": 1, "sec_xbrl": 1}


def test_reports_are_cut_once_out_of_what_is_stored_and_nobody_is_asked(desk: Callable[..., Desk]) -> None:
    here = desk(30)
    # Before the first submission nobody knows what is due: the window waits, and is not used up.
    first = here.poll("sec.docs", at(TUESDAY, 8))
    assert first is not None
    assert (first.status, here.asked()) == (CycleStatus.PENDING, 0), first.words
    tick(here, TUESDAY, 22, 10)
    tick(here, WEDNESDAY, 6)
    asked = here.asked()
    forms = [form for each in sections.FORMS for form in (each, f"{each}/A")]
    held = here.place.sql("select accession from filings.sec_documents where number = 1 and type = any(%s)", forms)
    sunday = TUESDAY + timedelta(days=4)
    verdict = here.poll("sec.docs", at(sunday, 23, 0, 20))
    assert verdict is not None
    assert verdict.status is CycleStatus.SUCCESS, verdict.words
    cut = here.place.sql("select accession, number, form, part, item, content, cik from filings.sec_sections")
    assert held
    assert {row["accession"] for row in cut} == {row["accession"] for row in held}
    assert here.asked() == asked
    assert here.place.sql("select subject from filings.sec_due_docs") == []
    marked = here.place.sql("select partition from publish.stale where table_name = 'filings.sec_sections:company'")
    assert {row["partition"] for row in marked} == {f"{row['cik']:010d}" for row in cut}
    # What is cut again from the same bytes is the same.
    stream, before = quick("sec.docs"), here.place.tables(registry.stream("sec.docs"))
    here.place.do(stream, Mode.REPLAY, TUESDAY - timedelta(days=10), sunday)
    assert here.place.tables(stream) == before
