"""The command line does what a DAG does, without Airflow: the same engine, the same words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from include import cli, collecting, registry
from tests.engine.cdn import Trouble
from tests.engine.desk import FRIDAY, MONDAY, THURSDAY, TUESDAY, Desk, ny

Cli = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def run(desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a verb against the desk's database and upstream; gives its exit code and the lines that it said."""
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", desk.url)
    monkeypatch.setenv("DAYBOOK_SANDBOX_URL", desk.cdn.url)
    monkeypatch.setenv("DAYBOOK_RAW_ROOT", str(desk.raw.root))
    real = collecting._worker
    monkeypatch.setattr(collecting, "_worker", lambda *given, **more: replace(real(*given, **more), nap=desk.nap))
    monkeypatch.setattr(collecting, "_pause", lambda stop: desk.advance(minutes=10))
    monkeypatch.setattr(collecting, "stop_flag", lambda: lambda: False)

    def main(*words: str) -> tuple[int, list[str]]:
        if words[0] in ("poll", "backfill", "replay") and "--all" not in words:
            words = (*words, "--source", "finra")
        code = cli.main([word for word in words if word != "--all"])
        said = capsys.readouterr()
        return code, (said.out + said.err).splitlines()

    return main


def first_words(lines: list[str]) -> list[str]:
    return [line.partition(" – ")[0] for line in lines]


# --- poll


def test_a_poll_collects_what_is_due_and_says_so_when_nothing_is(desk: Desk, run: Cli) -> None:
    desk.cdn.publish(TUESDAY)
    code, lines = run("poll")
    assert (code, first_words(lines)) == (0, ["DONE"])
    assert len(desk.rows()) == 15
    code, lines = run("poll")
    assert (code, first_words(lines)) == (0, ["NOTHING TO DO"])
    assert "To collect the session once more: poll --force" in lines[0]


def test_a_poll_that_finds_nothing_published_says_when_and_waits_if_told_to(desk: Desk, run: Cli) -> None:
    code, lines = run("poll")
    assert (code, first_words(lines)) == (0, ["WAITING"])
    asked = len(desk.cdn.requests)
    code, lines = run("poll")
    assert (code, first_words(lines)) == (0, ["WAITING"])
    assert len(desk.cdn.requests) == asked
    desk.cdn.publish(TUESDAY)
    code, lines = run("poll", "--wait")
    assert (code, first_words(lines)) == (0, ["DONE"])


def test_a_poll_of_everything_leaves_out_what_has_no_connection_and_says_so(
    desk: Desk, run: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.cdn.publish(TUESDAY)
    # The desk has one upstream; what else needs no key would be asked as well.
    everything = tuple(stream for stream in registry.streams() if stream.source in ("finra", "alpaca"))
    monkeypatch.setattr(registry, "streams", lambda: everything)
    code, lines = run("poll", "--all")
    assert code == 0
    assert sorted({*first_words(lines)}) == ["DONE", "LEFT OUT"]
    code, lines = run("poll", "--all", "--source", "alpaca")
    assert (code, {*first_words(lines)}) == (1, {"REFUSED"}), "who names it hears that it is missing"
    assert run("poll", "--all", "--force") == (
        1,
        ["REFUSED – Say for which --source or --streams: keys and sessions are those of a stream."],
    )


def test_a_poll_that_fails_ends_with_one(desk: Desk, run: Cli) -> None:
    desk.cdn.publish(TUESDAY)
    desk.cdn.trouble("CNMS", TUESDAY, *[Trouble() for _ in range(9)])
    code, lines = run("poll")
    assert (code, first_words(lines)) == (1, ["FAILED"])


def test_a_poll_of_keys_asks_for_the_newest_of_just_those_each_time_anew(desk: Desk, run: Cli) -> None:
    desk.cdn.publish(TUESDAY)
    for _ in range(2):
        code, lines = run("poll", "--keys", "CNMS", "--who", "kim")
        assert (code, first_words(lines)) == (0, ["STARTED", "DONE", "SUCCESS"])
    assert set(desk.cdn.asked()) == {"CNMSshvol20260915.txt"}
    rows = desk.sql("select mode, requested_by, left(run_id, 15) as name from collect.job_runs")
    assert rows == [{"mode": "poll", "requested_by": "kim", "name": "poll.finra.cli-"}] * 2


def test_a_forced_poll_is_a_backfill_of_what_the_last_window_was_responsible_for(desk: Desk, run: Cli) -> None:
    desk.cdn.publish(TUESDAY)
    code, (line,) = run("poll", "--force")
    assert (code, line.partition(", so ")[0]) == (1, "REFUSED – No window of finra.short_volume has run yet")
    run("poll")
    asked = len(desk.cdn.requests)
    for _ in range(2):
        code, lines = run("poll", "--force")
        assert (code, lines[-1].startswith("SUCCESS – run backfill-finra-2026-09-15-2026-09-15-")) == (0, True)
    assert len(desk.cdn.requests) == asked + 12


@pytest.mark.parametrize("words", [(), ("--keys", "CNMS"), ("--force",)])
def test_a_dry_run_shows_the_plan_and_writes_nothing(desk: Desk, run: Cli, words: tuple[str, ...]) -> None:
    if words == ("--force",):
        run("poll")
    before = desk.sql("select count(*) from collect.cycles"), len(desk.cdn.requests)
    code, lines = run("poll", "--dry-run", *words)
    assert (code, first_words(lines)[0], lines[-1]) == (0, "DRY RUN", "Nothing was written and nothing was asked for.")
    assert (desk.sql("select count(*) from collect.cycles"), len(desk.cdn.requests)) == before
    assert desk.sql("select 1 from collect.job_runs") == []


def test_keys_and_force_do_not_go_together(run: Cli) -> None:
    code, lines = run("poll", "--keys", "CNMS", "--force")
    assert (code, first_words(lines)) == (1, ["REFUSED"])


def test_a_frozen_stream_says_by_whom_and_what_ends_it(desk: Desk, run: Cli) -> None:
    run("controls", "freeze", "--source", "finra", "--who", "kim", "--why", "a move")
    code, lines = run("poll")
    assert (code, first_words(lines)) == (0, ["FROZEN"])
    assert "by kim: a move" in lines[0]


# --- backfill, replay, and what one sees of them


def test_a_backfill_and_a_replay_are_worked_to_their_end_and_shown(desk: Desk, run: Cli) -> None:
    desk.at(ny(FRIDAY, 21))
    for day in (MONDAY, TUESDAY, THURSDAY):
        desk.cdn.publish(day)
    days = ("--start", f"{MONDAY}", "--end", f"{TUESDAY}")
    code, lines = run("backfill", *days, "--run-id", "two-days", "--who", "kim", "--reason", "a gap")
    assert (code, first_words(lines)) == (0, ["STARTED", "DONE", "DONE", "SUCCESS"])
    assert first_words(run("replay", *days, "--reason", "to see")[1])[-1] == "SUCCESS"
    code, lines = run("runs", "two-days")
    assert lines[0] == "SUCCESS – backfill two-days, asked for by kim"
    assert "    why: a gap" in lines
    assert "        last done 2026-09-14" in lines
    assert len(run("runs")[1]) == 2
    assert run("runs", "nothing")[0] == 1


def test_a_worker_on_the_command_line_is_named_in_the_lease(desk: Desk, run: Cli) -> None:
    seen: list[Any] = []
    desk.cdn.publish(TUESDAY)
    desk.cdn.before = lambda name: seen.extend(
        desk.sql("select lease_owner from collect.cycles where lease_owner > ''")
    )
    run("poll", "--who", "kim")
    assert seen[0]["lease_owner"].startswith("the command line of kim on ")


def test_pending_keys_are_shown_with_why_and_when(desk: Desk, run: Cli) -> None:
    desk.cdn.publish(TUESDAY, facilities=("CNMS", "FNSQ", "FNQC", "FNYX", "FORF"))
    desk.cdn.trouble("CNMS", TUESDAY, *[Trouble() for _ in range(9)])
    run("poll")
    code, lines = run("pending", "--source", "finra")
    (line,) = (line for line in lines if "CNMS/2026-09-15" in line)
    assert code == 0
    assert " failed " in line
    assert "next 2026-09-16" in line
    assert run("pending", "--streams", "finra.nothing")[0] == 1


# --- quarantine


def test_an_entry_is_listed_accepted_and_read_again_in_one_go(desk: Desk, run: Cli) -> None:
    desk.cdn.publish(TUESDAY, {"GOOD": (1, 0, 2), "MORE": (9, 0, 3)}, facilities=("CNMS",))
    desk.poll()
    (entry,) = desk.quarantine()
    number = str(entry["quarantine_id"])
    code, lines = run("quarantine", "list")
    assert (code, lines[0].split()[0]) == (0, number)
    assert lines[-1].startswith("Let one out with")
    assert run("quarantine", "accept", number)[1] == [
        "REFUSED – Say who wants it and why: both are kept with the entry. Nothing was done."
    ]
    code, lines = run("quarantine", "accept", number, "--why", "it is so", "--who", "kim")
    assert (code, first_words(lines)) == (0, ["ACCEPTED", "REPLAYED", "SUCCESS"])
    assert set(desk.values()) == {"GOOD", "MORE"}
    assert "accepted by kim at" in run("quarantine", "list", "--state", "accepted")[1][1]
    assert run("quarantine", "drop", number, "--why", "x")[0] == 1
    assert run("quarantine", "list")[1] == ["NOTHING – no entry is open"]


# --- what Slack refused


def test_what_slack_refused_is_shown_with_the_reason_and_decided_on_with_a_why(desk: Desk, run: Cli) -> None:
    assert run("alerts", "list") == (0, ["NOTHING – Slack has refused none for good"])
    desk.sql(
        "insert into ops.alerts (alert_key, severity, text, next_try_at, created_at, refused_at, refused_why)"
        " select 'a/' || n, 'error', 'it broke', collect.clock(), collect.clock(), collect.clock(), 'invalid_payload'"
        " from generate_series(1, 2) n"
    )
    first, second = (row["alert_id"] for row in desk.sql("select alert_id from ops.alerts order by alert_id"))
    code, lines = run("alerts", "list")
    assert (code, "invalid_payload" in lines[0], "a/1: it broke" in lines[1]) == (0, True, True)
    code, lines = run("alerts", "drop", str(first))
    assert (code, first_words(lines)) == (1, ["REFUSED"])
    assert first_words(run("alerts", "drop", str(first), "--why", "old", "--who", "kim")[1]) == ["DONE"]
    assert first_words(run("alerts", "retry", str(second), "--why", "mended")[1]) == ["DONE"]
    assert run("alerts", "retry", str(second), "--why", "twice")[0] == 1
    assert desk.one("select settled_by from ops.alerts where alert_id = %s", first)["settled_by"] == "kim"
    assert run("alerts", "list")[1] == ["NOTHING – Slack has refused none for good"]
