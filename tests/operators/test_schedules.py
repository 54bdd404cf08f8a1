"""Schedules that an installation sets: one file for Airflow, the engine and the command line, refused in words."""

from __future__ import annotations

import ast
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from include import cli, collecting, registry, schedules
from include.calendars import calendar, last_instant, window_for
from include.dag_factory import source_dag, when
from include.engine.chunks import latest_day
from include.schedules import Overrides, Times, applied, read
from include.settings import SettingError
from tests.house.tree import ROOT
from tests.operators.stage import FINRA, STREAM

SEOUL_MORNING = Times("0 9 * * 2-6", "Asia/Seoul", is_set=True)


@pytest.fixture
def file(tmp_path, monkeypatch):
    """The file of this installation; gives a function that writes it."""
    path = tmp_path / "schedules.yaml"

    def write(text: str) -> Path:
        path.write_text(text, encoding="utf-8")
        read.cache_clear()
        registry.sources.cache_clear()
        return path

    monkeypatch.setattr(schedules, "FILE", path)
    monkeypatch.setattr(read.__wrapped__, "__defaults__", (path,))
    yield write
    read.cache_clear()
    registry.sources.cache_clear()


def test_one_file_rules_airflows_timetable_the_engines_windows_and_the_command_line(file):
    file('jobs: {finra: {cron: "0 9 * * 2-6", timezone: Asia/Seoul}}')
    stream = registry.stream("finra.short_volume")
    dag = source_dag(registry.source("finra"))
    assert (dag.timetable.expression, str(dag.timetable.timezone)) == ("0 9 * * 2-6", "Asia/Seoul")
    assert "09:00 Seoul, Tuesday to Saturday" in dag.doc_md
    start = last_instant(stream.schedule.cron, stream.schedule.timezone, datetime(2026, 9, 16, 3, tzinfo=UTC))
    assert start == datetime(2026, 9, 16, 0, 0, tzinfo=UTC)
    assert stream in collecting.chosen(cli._parser().parse_args(["poll"]))


def test_a_session_date_is_told_by_the_markets_own_day_whatever_the_zone(file):
    file('streams: {finra.short_volume: {cron: "0 9 * * 2-6", timezone: Asia/Seoul}}')
    stream = registry.stream("finra.short_volume")
    wednesday_morning = datetime(2026, 9, 16, 0, 0, tzinfo=UTC)
    assert window_for(stream, wednesday_morning, calendar("XNYS")).session_date == date(2026, 9, 15)
    assert latest_day(stream, wednesday_morning) == date(2026, 9, 15)


def test_jobs_of_the_system_follow_the_file_too_and_say_so(file):
    file('jobs: {upkeep: {cron: "*/5 * * * *", timezone: Asia/Seoul}}')
    found = when("upkeep", "*/2 * * * *", "Asia/Seoul")
    assert found.timetable.expression == "*/5 * * * *"
    assert found.words == "every 5 minutes, every day, as set in config/schedules.yaml"
    assert when("dispatch", "0 0 * * *", "Asia/Seoul").words == "00:00 Seoul, every day"


def test_nothing_is_set_without_a_file_and_in_the_one_that_is_delivered(tmp_path):
    assert read(tmp_path / "none.yaml") == Overrides()
    assert read(ROOT / "config" / "schedules.yaml") == Overrides()
    assert applied([FINRA], Overrides(), ()) == (FINRA,)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("jobs: {finra: {cron: '99 9 * * *', timezone: Asia/Seoul}}", "jobs.finra: '99 9 * * *' is no cron expression"),
        ("jobs: {finra: {cron: '@daily', timezone: Asia/Seoul}}", "'@daily' is no cron expression of five fields"),
        ("jobs: {finra: {cron: '0 9 * * *', timezone: Asia/Soul}}", "there is no time zone 'Asia/Soul'"),
        ("jobs: {finra: {cron: '0 9 * * *'}}", "jobs.finra must be like {cron:"),
        ("jobs: [finra]", "jobs.? must be like"),
        ("sources: {}", "has the sections streams and jobs and nothing else"),
        ("jobs: {", "is not YAML"),
        ("jobs: {fnra: {cron: '0 9 * * *', timezone: Asia/Seoul}}", "jobs has fnra, which nothing is called"),
        ("streams: {finra: {cron: '0 9 * * *', timezone: Asia/Seoul}}", "streams has finra, which nothing is called"),
    ],
)
def test_what_cannot_be_is_refused_in_words_that_name_the_entry(file, connected, text, words, capsys):
    file(text)
    with pytest.raises(SettingError) as refused:
        registry.sources()
    assert words in str(refused.value)
    assert str(refused.value).startswith("schedules.yaml")
    assert cli.main(["poll"]) == 1
    assert capsys.readouterr().err.startswith("REFUSED – schedules.yaml")


def test_streams_of_one_job_cannot_be_set_apart():
    other = replace(STREAM, name="finra.other")
    with pytest.raises(SettingError, match=r"would run at different times .* Set jobs\.finra"):
        applied([replace(FINRA, streams=(STREAM, other))], Overrides(streams={STREAM.name: SEOUL_MORNING}), ())


def test_every_scheduled_dag_of_the_system_can_be_set():
    files = [
        path for path in sorted((ROOT / "dags").glob("*.py")) if "CronTriggerTimetable(" in path.read_text("utf-8")
    ]
    assert files == [], "a DAG file asks `when` for its timetable"
    named = {
        node.args[0].value
        for path in (ROOT / "dags").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "when"
    }
    assert named <= schedules.SYSTEM_JOBS
