"""Chunks of a stream's own naming: each counted by itself, one request for several, planned on from where it ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta

import pytest

from include.calendars import calendar
from include.contract import AnswerError, Ask, Chunk, DefiniteRefusal, Mode, Outcome, Request, Span
from include.engine import chunks, credentials, jobs
from include.sources.finra import SOURCE
from include.sources.finra.streams import file_request
from tests.engine.cdn import Trouble
from tests.engine.desk import FRIDAY, MONDAY, STREAM, TUESDAY, Desk, ny

FACILITIES = ("CNMS", "FNSQ")


def halves(span: Span) -> Iterator[Chunk]:
    """A chunk for each facility and half of a week; a file of Wednesday is wanted by both halves."""
    for half in ("late", "early"):
        for facility in span.keys or FACILITIES:
            yield Chunk(
                f"{half}/{facility}", span.end, {"half": half, "facility": facility, "to": span.end.isoformat()}
            )


def plan(ask: Ask) -> Iterator[Request]:
    if not ask.chunk:
        yield from STREAM.plan(ask)
        return
    first, last = (0, 2) if ask.chunk["half"] == "late" else (2, 4)
    for back in range(first, last + 1):
        day = date.fromisoformat(ask.chunk["to"]) - timedelta(days=back)
        yield file_request(ask.chunk["facility"], day)


HALVES = replace(STREAM, recheck=None, chunks=halves, plan=plan, usual_requests=2)


@pytest.fixture
def week(desk: Desk) -> Desk:
    desk.stream = HALVES
    desk.at(ny(FRIDAY, 21))
    for back in range(5):
        desk.cdn.publish(FRIDAY - timedelta(days=back), {"AAPL": (1, 0, 2)}, facilities=FACILITIES)
    return desk


def test_a_stream_names_its_own_chunks(week: Desk) -> None:
    request = week.request(Mode.BACKFILL, MONDAY, FRIDAY, run_id="mine")
    week.begin(request)
    assert [row["slot"] for row in week.cycles()] == [
        "mine/late/CNMS", "mine/late/FNSQ", "mine/early/CNMS", "mine/early/FNSQ",
    ]  # fmt: skip
    assert "goes on at late/CNMS" in jobs.progress(week.url, "mine").words
    week.work_off(request)
    assert jobs.conclude(week.url, "mine")[0] is Outcome.SUCCESS
    assert len(week.held_days()) == 5


def test_a_request_of_several_chunks_is_sent_once(week: Desk) -> None:
    request = week.request(Mode.BACKFILL, MONDAY, FRIDAY)
    week.do(request)
    asked = week.cdn.asked()
    assert len(asked) == len(set(asked)) == 10
    assert jobs.progress(week.url, request.name).done == 4


def test_what_another_chunk_could_not_have_is_asked_again(week: Desk) -> None:
    wednesday = FRIDAY - timedelta(days=2)
    week.cdn.trouble("CNMS", wednesday, *(Trouble(404, body=b"trouble") for _ in range(1)))
    week.cdn.files[f"CNMSshvol{wednesday:%Y%m%d}.txt"] = b"no header that anybody knows\r\n"
    request = week.request(Mode.BACKFILL, MONDAY, FRIDAY, keys=("CNMS",))
    week.do(request)
    # Refused as not there by the first chunk, and unreadable for the second: each one asked for itself.
    assert len(week.cdn.asked("CNMS", wednesday)) == 2


def test_forcing_a_run_sends_each_request_once_more(week: Desk) -> None:
    request = week.request(Mode.BACKFILL, MONDAY, FRIDAY, keys=("CNMS",))
    week.do(request)
    week.cdn.forget()
    week.advance(minutes=1)
    week.do(replace(request, force=True))
    assert len(week.cdn.asked()) == 5


def test_a_replay_reads_the_units_that_its_chunks_plan(week: Desk) -> None:
    week.backfill(MONDAY, FRIDAY)
    before = week.rows()
    week.sql("delete from market.finra_short_volume")
    request = week.request(Mode.REPLAY, MONDAY, FRIDAY)
    week.cdn.forget()
    week.do(request)
    assert week.rows() == before
    assert not week.cdn.asked()


def test_planning_goes_on_where_it_ended(week: Desk) -> None:
    days = calendar("XNYS")

    def all_chunks() -> Iterator[Chunk]:
        return chunks.between(HALVES, Mode.BACKFILL, MONDAY, FRIDAY, (), days, ny(FRIDAY))

    names = [chunk.name for chunk in all_chunks()]
    assert [chunk.name for chunk in chunks.after(all_chunks, None)] == names
    assert [chunk.name for chunk in chunks.after(all_chunks, names[1])] == names[2:]
    assert [chunk.name for chunk in chunks.after(all_chunks, names[-1])] == []
    # Where the stream names its chunks otherwise by now, writing all of them again changes nothing.
    assert [chunk.name for chunk in chunks.after(all_chunks, "of an older release")] == names


def test_a_span_never_reaches_past_today_or_before_the_first_session(week: Desk) -> None:
    seen: list[Span] = []
    stream = replace(HALVES, chunks=lambda span: iter(seen.append(span) or ()))
    days = calendar("XNYS")
    list(chunks.between(stream, Mode.BACKFILL, date(1990, 1, 1), date(2030, 1, 1), ("CNMS",), days, ny(TUESDAY)))
    assert seen == [Span(Mode.BACKFILL, stream.first_session, TUESDAY, TUESDAY, ("CNMS",))]
    assert not list(chunks.between(stream, Mode.REPLAY, FRIDAY, FRIDAY, (), days, ny(TUESDAY)))
    assert len(seen) == 1


def test_a_dry_run_counts_a_shared_request_once_and_further_pages(week: Desk) -> None:
    (_, line, _) = jobs.dry_run(week.url, week.request(Mode.BACKFILL, MONDAY, FRIDAY))
    assert "4 chunks, 20 requests" in line


def test_a_poll_of_keys_asks_for_the_newest_day_whatever_the_chunks_are(week: Desk) -> None:
    week.do(week.request(Mode.POLL, keys=("CNMS",), run_id="poll.now"))
    assert week.held_days() == {FRIDAY}


# --- what a source says of an answer


def told(trouble: Exception) -> object:
    def classify(answer: object) -> object:
        if getattr(answer, "status", 0) == 400:
            raise trouble
        return STREAM.classify(answer)  # type: ignore[arg-type]

    return classify


def test_a_worker_that_is_stopped_while_it_waits_for_what_may_pass_has_no_answer_yet(desk: Desk) -> None:
    """Although its status is one that is final elsewhere: the source's word on it is what counts."""
    desk.cdn.publish(TUESDAY)
    desk.stream = replace(STREAM, classify=told(AnswerError("busy", may_pass=True)))  # type: ignore[arg-type]
    desk.cdn.trouble("CNMS", TUESDAY, Trouble(400))
    naps: list[float] = []
    verdict = desk.poll(nap=naps.append, stop=lambda: bool(naps))
    assert verdict.is_stopped
    assert desk.poll().outcome is Outcome.SUCCESS
    assert len(desk.cdn.asked("CNMS")) == 2


@pytest.mark.parametrize("trouble", [AnswerError("busy", may_pass=True), DefiniteRefusal("no such key", may_pass=True)])
def test_what_may_pass_is_asked_again_slowly_before_it_is_believed(desk: Desk, trouble: Exception) -> None:
    desk.stream = replace(STREAM, classify=told(trouble))  # type: ignore[arg-type]
    desk.cdn.publish(TUESDAY)
    desk.cdn.trouble("CNMS", TUESDAY, Trouble(400), Trouble(400))
    verdict = desk.poll()
    assert verdict.outcome is Outcome.SUCCESS
    assert len(desk.cdn.asked("CNMS")) == 3


def test_a_refusal_that_does_not_pass_ends_the_window_for_good(desk: Desk) -> None:
    desk.stream = replace(STREAM, classify=told(DefiniteRefusal("the key is not known", may_pass=True)))  # type: ignore[arg-type]
    desk.cdn.publish(TUESDAY)
    desk.cdn.trouble("CNMS", TUESDAY, *(Trouble(400) for _ in range(9)))
    verdict = desk.poll()
    assert verdict.outcome is Outcome.FAILED_TERMINAL
    assert "the key is not known" in verdict.words
    assert len(desk.cdn.asked("CNMS")) == 4


def test_an_error_in_words_is_kept_with_the_key(desk: Desk) -> None:
    desk.stream = replace(STREAM, classify=told(AnswerError("there is no such file, ever")))  # type: ignore[arg-type]
    desk.cdn.publish(TUESDAY)
    desk.cdn.trouble("CNMS", TUESDAY, Trouble(400))
    desk.poll()
    assert len(desk.cdn.asked("CNMS")) == 1
    assert desk.pending()[f"CNMS/{TUESDAY}"]["last_error"] == "there is no such file, ever"


def test_too_many_requests_wait_as_long_as_the_group_says(desk: Desk) -> None:
    group = replace(STREAM.host_group, busy_wait=timedelta(seconds=20))
    desk.stream = replace(STREAM, host_group=group)
    desk.cdn.publish(TUESDAY)
    desk.cdn.trouble("CNMS", TUESDAY, Trouble(429), Trouble(423))
    assert desk.poll().outcome is Outcome.SUCCESS
    assert 20 <= sum(desk.naps) < 30


def test_a_key_goes_into_the_parameter_that_the_source_names() -> None:
    reach = credentials.build(replace(SOURCE, key_param="api_key"), host="", password="a secret")
    assert dict(reach.params) == {"api_key": "a secret"}
    assert reach.secrets == ("a secret",)
    assert not credentials.build(SOURCE, host="", password="a secret").params
