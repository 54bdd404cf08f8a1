"""Controls: who may stop what, that it holds for claims at once, and that everybody sees who, why and since when."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from include import cli
from include.contract import Mode
from include.engine import controls, lease, windows
from include.engine.controls import Change, ControlRefused
from include.engine.db import call_and_commit, connect, query
from include.settings import SettingError
from tests.engine.desk import beside, wait_until_blocked
from tests.engine.seoul import DAY, FINRA, KRX, TWICE, Seoul, kst, opened


@pytest.fixture
def seoul(database: str) -> Iterator[Seoul]:
    """Nine past eight; KRX's window is about to open."""
    with opened(database, kst(DAY, 8, 11), (FINRA, KRX, TWICE)) as here:
        yield here


def change(seoul: Seoul, action: Any, scope: Any, name: str = "", who: str = "kim", why: str = "a test") -> Any:
    """Make a change."""
    return controls.apply(seoul.url, Change(action, scope, name, who, why))


def chunk(seoul: Seoul, mode: str = "backfill", run: str = "r") -> None:
    """Write a chunk of KRX that waits."""
    seoul.sql(
        "insert into collect.cycles (stream, mode, slot, run_id, kind, created_at, updated_at)"
        " values (%s, %s, %s, %s, 'chunk', collect.clock(), collect.clock())",
        KRX.name,
        mode,
        f"{run}/1",
        run,
    )


def claimed(seoul: Seoul, mode: Mode, run: str | None) -> bool:
    """Whether a claim gets anything; what it gets is given back."""
    held = lease.claim(seoul.url, KRX.name, mode, run, "a worker")
    if held is None:
        return False
    with connect(seoul.url) as connection:
        held.settle_and_commit(connection, "PENDING", {})  # type: ignore[arg-type]
    return True


@pytest.mark.parametrize("action", ["freeze", "drain"])
def test_what_is_frozen_or_draining_gets_no_new_claim_and_replay_stays_possible(seoul: Seoul, action: str) -> None:
    seoul.open(KRX, kst(DAY, 8, 10))
    chunk(seoul)
    chunk(seoul, "replay", "again")
    scopes = (("all", ""), ("source", "krx"), ("stream", KRX.name), ("job", "krx"), ("job", "krx_prices"))
    for scope, name in scopes:
        assert change(seoul, action, scope, name).is_new
        assert not claimed(seoul, Mode.POLL, None)
        assert not claimed(seoul, Mode.BACKFILL, "r")
        assert claimed(seoul, Mode.REPLAY, "again")
        assert change(seoul, "resume", scope, name).is_new
        assert claimed(seoul, Mode.POLL, None)
        assert claimed(seoul, Mode.BACKFILL, "r")
    for scope, name in (("source", "finra"), ("stream", FINRA.name), ("job", "ecos_late")):
        change(seoul, action, scope, name)
    assert claimed(seoul, Mode.POLL, None)


def test_a_job_is_the_streams_of_one_dag_and_not_the_source(seoul: Seoul) -> None:
    change(seoul, "freeze", "job", "ecos_late")
    rows = {
        row["stream"]: row for row in seoul.sql("select stream, collect.frozen(stream) as why from collect.streams")
    }
    assert rows[TWICE.name]["why"].startswith("job ecos_late is frozen since 2026-09-16 08:11 KST by kim: a test")
    assert rows[FINRA.name]["why"] is None
    with pytest.raises(ControlRefused, match="There is no job 'ecos'"):
        change(seoul, "freeze", "job", "ecos")


def test_a_running_slice_finishes_and_then_none_follows(seoul: Seoul) -> None:
    seoul.work(KRX, kst(DAY, 8, 10), "RUNNING")
    done = change(seoul, "drain", "source", "krx")
    assert done.words == (
        "DONE – source krx is draining, since 2026-09-16 08:11 KST by kim: a test. 1 slices still run and finish; "
        "nothing new is claimed. Replay stays possible."
    )
    (row,) = controls.listed(seoul.url)
    assert controls.describe(row).startswith(
        "DRAINING (1 slices still run) – source krx since 2026-09-16 08:11 KST by kim"
    )
    seoul.settle(KRX, "PENDING")
    assert seoul.claim(KRX) is None
    (row,) = controls.listed(seoul.url)
    assert controls.describe(row).startswith("DRAINED – source krx")


def test_who_why_and_since_when_are_kept_until_it_changes(seoul: Seoul) -> None:
    first = change(seoul, "freeze", "stream", KRX.name, why="the upstream asked for it")
    seoul.at(kst(DAY, 8, 30))
    second = change(seoul, "freeze", "stream", KRX.name, who="lee", why="me too")
    assert not second.is_new
    assert (second.who, second.why, second.since) == ("kim", "the upstream asked for it", first.since)
    assert second.words.startswith(
        "NOTHING TO DO – stream krx.prices is frozen already, since 2026-09-16 08:11 KST by kim"
    )
    third = change(seoul, "resume", "stream", KRX.name, who="lee", why="they are done")
    assert (third.is_new, third.who, third.state) == (True, "lee", "running")
    assert windows.standing(seoul.url, KRX).frozen is None


def test_a_resume_says_what_still_holds(seoul: Seoul) -> None:
    change(seoul, "freeze", "all", why="moving house")
    change(seoul, "freeze", "stream", KRX.name)
    words = change(seoul, "resume", "stream", KRX.name).words
    assert words.startswith("DONE – stream krx.prices is running")
    assert "Still held by something else: krx.prices: everything is frozen since" in words
    assert "moving house" in words


def test_a_frozen_streams_windows_are_not_opened_and_the_newest_is_once_it_runs(seoul: Seoul) -> None:
    change(seoul, "freeze", "source", "krx")
    assert windows.open_due(seoul.url, KRX) is None
    change(seoul, "resume", "source", "krx")
    found = windows.open_due(seoul.url, KRX)
    assert found is not None
    assert found.row["window_start"] == kst(DAY, 8, 10)


def test_no_claim_commits_after_a_freeze_has(seoul: Seoul) -> None:
    """A claim in flight is waited for; one that comes while the freeze is in flight waits, and gets nothing."""
    seoul.open(KRX, kst(DAY, 8, 10))
    values = {"stream": KRX.name, "mode": "poll", "run_id": None, "owner": "w", "ttl": "5 minutes"}
    with connect(seoul.url) as claiming:
        assert len(claiming.execute(query("lease.claim"), values).fetchall()) == 1
        freezing = beside(lambda: change(seoul, "freeze", "stream", KRX.name))
        wait_until_blocked(seoul.url)
        claiming.rollback()
    assert freezing.result().is_new
    change(seoul, "resume", "stream", KRX.name)
    with connect(seoul.url) as freezing_now, connect(seoul.url) as late:
        freezing_now.execute(
            query("controls.change"),
            {"scope": "stream", "name": KRX.name, "state": "frozen", "why": "a test", "who": "kim"},
        )
        claim = beside(lambda: call_and_commit(late, query("lease.claim"), values))
        wait_until_blocked(seoul.url)
        freezing_now.commit()
        assert claim.result() == []
    assert seoul.cycles(KRX)[0]["cycle_status"] == "PENDING"


REFUSED = [
    (
        Change("freeze", "stream", "krx.nothing", "kim", "x"),
        "There is no stream 'krx.nothing'; there are ecos.observations,",
    ),
    (Change("freeze", "source", "", "kim", "x"), "There is no source ''"),
    (Change("freeze", "all", "krx", "kim", "x"), "all has no name"),
    (Change("freeze", "all", "", "", "x"), "Say who wants it and why"),
    (Change("freeze", "all", "", "kim", "  "), "Say who wants it and why"),
    (Change("freeze", "dispatch", "", "kim", "x"), "Dispatch is switched off and on"),
    (Change("off", "source", "krx", "kim", "x"), "Dispatch is switched off and on"),
    (Change("retire", "source", "krx", "kim", "x"), "Only a stream is taken out of service"),
]


def test_what_cannot_be_is_refused_in_words_and_changes_nothing(seoul: Seoul) -> None:
    for wanted, words in REFUSED:
        with pytest.raises(ControlRefused, match=f"^{re.escape(words)}") as refused:
            controls.apply(seoul.url, wanted)
        assert str(refused.value).endswith("Nothing was changed.")
    assert seoul.sql("select 1 from collect.controls") == []


def test_a_stream_is_taken_out_of_service_and_back(seoul: Seoul) -> None:
    before = seoul.one("select activated_at from collect.streams where stream = %s", KRX.name)["activated_at"]
    done = change(seoul, "retire", "stream", KRX.name, why="superseded")
    assert (done.is_new, done.state) == (True, "out of service")
    assert not change(seoul, "retire", "stream", KRX.name).is_new
    standing = windows.standing(seoul.url, KRX).frozen
    assert standing == "stream krx.prices is out of service since 2026-09-16 08:11 KST by kim: superseded"
    # Being declared again at the next start does not bring it back.
    windows.declare(seoul.url, seoul.streams)
    assert not seoul.one("select active from collect.streams where stream = %s", KRX.name)["active"]
    (row,) = controls.listed(seoul.url)
    assert controls.describe(row) == "RETIRED – stream krx.prices since 2026-09-16 08:11 KST by kim: superseded"
    assert change(seoul, "activate", "stream", KRX.name).is_new
    after = seoul.one("select activated_at, retired_at from collect.streams where stream = %s", KRX.name)
    assert after["activated_at"] > before
    assert after["retired_at"] is None


def test_dispatch_is_switched_off_and_on(seoul: Seoul) -> None:
    done = change(seoul, "off", "dispatch", why="moving house")
    assert done.words == "DONE – dispatch is off, since 2026-09-16 08:11 KST by kim: moving house."
    assert windows.standing(seoul.url, KRX).frozen is None
    assert windows.open_due(seoul.url, KRX) is None
    change(seoul, "on", "dispatch")
    assert windows.open_due(seoul.url, KRX) is not None


# --- the file of defaults


def file(folder: Path, text: str) -> Path:
    """A file of defaults."""
    path = folder / "controls.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def load(seoul: Seoul, path: Path) -> bool:
    """Load a file of defaults."""
    return controls.load_defaults(seoul.line(True), path)


def test_an_operators_word_wins_over_the_file(seoul: Seoul, tmp_path: Path) -> None:
    path = file(tmp_path, "sources: {krx: {frozen: true}, finra: {frozen: false}}\njobs: {ecos_late: {frozen: true}}\n")
    assert load(seoul, path)
    assert not load(seoul, path)
    why = {
        row["stream"]: row["why"]
        for row in seoul.sql("select stream, collect.frozen(stream) as why from collect.streams")
    }
    assert why[KRX.name] == "source krx is frozen since 2026-09-16 08:11 KST by config/controls.yaml: the default"
    assert why[TWICE.name].startswith("job ecos_late is frozen")
    assert why[FINRA.name] is None
    change(seoul, "resume", "source", "krx")
    change(seoul, "freeze", "source", "finra")
    load(seoul, path)
    assert windows.standing(seoul.url, KRX).frozen is None
    assert "by kim" in (windows.standing(seoul.url, FINRA).frozen or "")
    lines = [controls.describe(row) for row in controls.listed(seoul.url)]
    assert [line.partition(" since")[0] for line in lines] == [
        "FROZEN – source finra",
        "RUNNING – source krx",
        "FROZEN – job ecos_late",
    ]


def test_what_the_file_no_longer_says_no_longer_holds(seoul: Seoul, tmp_path: Path) -> None:
    load(seoul, file(tmp_path, "streams: {krx.prices: {frozen: true}}"))
    assert windows.standing(seoul.url, KRX).frozen is not None
    assert load(seoul, file(tmp_path, ""))
    assert windows.standing(seoul.url, KRX).frozen is None
    assert not load(seoul, tmp_path / "nothing.yaml")


def test_a_name_in_the_file_that_nothing_has_is_shown_as_such(seoul: Seoul, tmp_path: Path) -> None:
    load(seoul, file(tmp_path, "jobs: {sec_xbrl_facts: {frozen: true}}"))
    (row,) = controls.listed(seoul.url)
    assert "(nothing of that name is declared)" in controls.describe(row)


@pytest.mark.parametrize(
    "text",
    [
        "sources: [krx]",
        "streams: {krx.prices: frozen}",
        "jobs: {a: {frozen: maybe}}",
        "nothing: {}",
        "- a",
        "a: [",
        "jobs: 3",
    ],
)
def test_a_file_that_says_no_control_is_refused_in_words(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingError, match=r"^controls\.yaml.*othing was changed\.$"):
        controls.defaults(file(tmp_path, text))


def test_the_file_that_is_shipped_freezes_nothing() -> None:
    assert controls.defaults() == []


def test_a_freeze_by_the_file_is_a_state_write_too(seoul: Seoul, tmp_path: Path) -> None:
    seoul.at(kst(DAY, 8, 30))
    seoul.dispatch()
    seoul.at(kst(DAY, 9, 0, 1))
    load(seoul, file(tmp_path, "sources: {krx: {frozen: true}}"))
    assert seoul.read().captured_by == "config/controls.yaml"
    assert not seoul.items()[KRX.name].frozen


def test_the_table_of_controls_takes_only_what_it_knows(seoul: Seoul) -> None:
    for values in (("stream", "krx.prices", "melted"), ("planet", "earth", "frozen")):
        with pytest.raises(psycopg.errors.CheckViolation):
            seoul.sql("select * from collect.control(%s, %s, %s, 'x', 'x')", *values)


# --- the command line


def run(seoul: Seoul, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Run a verb against the database."""
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", seoul.url)
    return cli.main(words)


def test_the_command_line_controls_and_shows(
    seoul: Seoul, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(seoul, monkeypatch, "controls", "list") == 0
    assert capsys.readouterr().out == "NOTHING – nothing is frozen or set\n"
    assert run(seoul, monkeypatch, "controls", "freeze", "--source", "krx", "--who", "kim", "--why", "a test") == 0
    assert capsys.readouterr().out.startswith("DONE – source krx is frozen, since 2026-09-16 08:11 KST by kim: a test.")
    assert run(seoul, monkeypatch, "controls", "list") == 0
    assert capsys.readouterr().out == "FROZEN – source krx since 2026-09-16 08:11 KST by kim: a test\n"
    assert run(seoul, monkeypatch, "controls", "resume", "--source", "nobody", "--why", "x") == 1
    assert "REFUSED – There is no source 'nobody'" in capsys.readouterr().err
    assert run(seoul, monkeypatch, "controls", "drain", "--why", "x") == 2
    assert "say one thing" in capsys.readouterr().err
    assert run(seoul, monkeypatch, "controls", "off", "--dispatch", "--why", "x", "--who", "kim") == 0


def test_the_command_line_shows_incidents_and_makes_silences_that_end(
    seoul: Seoul, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(seoul, monkeypatch, "incidents") == 0
    assert capsys.readouterr().out == "NOTHING – no incident is open\n"
    seoul.sql("select ops.open_incident('lag/krx.prices', 'warning', 'it lags', 'krx.prices', null, interval '1 day')")
    assert run(seoul, monkeypatch, "incidents") == 0
    assert capsys.readouterr().out.startswith("WARNING – lag/krx.prices, since 2026-09-16 08:11 KST: it lags")
    seoul.sql("select ops.close_incidents(array['lag/krx.prices'], 'it is there')")
    assert run(seoul, monkeypatch, "incidents", "--over") == 0
    assert "OVER since 2026-09-16 08:11 KST – lag/krx.prices" in capsys.readouterr().out
    quiet = ("silences", "make", "lag/*", "--until", "2026-09-16T12:00+09:00", "--who", "kim")
    assert run(seoul, monkeypatch, *quiet) == 1, "without a reason"
    assert run(seoul, monkeypatch, *quiet, "--why", "KRX moves house") == 0
    assert "are not sent until 2026-09-16 12:00 KST (silence 1)" in capsys.readouterr().out
    assert run(seoul, monkeypatch, "silences", "list") == 0
    assert "lag/*  until 2026-09-16 12:00 KST by kim: KRX moves house (0 kept back)" in capsys.readouterr().out
    assert run(seoul, monkeypatch, "silences", "lift", "1", "--who", "lee") == 1, "without a reason"
    assert run(seoul, monkeypatch, "silences", "lift", "1", "--who", "lee", "--why", "they have moved") == 0
    assert run(seoul, monkeypatch, "silences", "lift", "one") == 1
    assert run(seoul, monkeypatch, "silences", "make", "x", "--why", "y") == 1, "without an end"


def test_the_command_line_shows_the_snapshot_of_a_date(
    seoul: Seoul, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(seoul, monkeypatch, "snapshot", "2020-01-01") == 0
    assert capsys.readouterr().out.startswith("UNAVAILABLE – 09:00 of 2020-01-01")
    seoul.dispatch()
    seoul.work(replace(KRX), kst(DAY, 8, 10))
    seoul.at(kst(DAY, 9))
    seoul.capture()
    assert run(seoul, monkeypatch, "snapshot") == 0
    first, *items = capsys.readouterr().out.splitlines()
    assert first.startswith("LATE – 09:00 of 2026-09-16: 2 of 3 streams were late")
    assert [line.split()[:2] for line in items] == [
        ["ecos.observations", "NOT_STARTED"],
        ["finra.short_volume", "NOT_STARTED"],
        ["krx.prices", "SUCCESS"],
    ]
