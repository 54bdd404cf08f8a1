"""The page of a DAG: right times in both zones, the same text everywhere."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from include import registry
from include.engine.db import transaction
from include.operators.hours import schedule_words
from include.operators.page import doc, keys_words, wait_words
from tests.operators.stage import FINRA, STREAM


@pytest.mark.parametrize(
    ("cron", "zone", "words"),
    [
        (
            "35 18 * * 1-5",
            "America/New_York",
            "18:35 New York, Monday to Friday (07:35 the next day in Seoul in summer, 08:35 the next day in winter)",
        ),
        ("0 8 * * *", "Asia/Seoul", "08:00 Seoul, every day"),
        ("0 12 * * 0", "UTC", "12:00 UTC, Sunday (21:00 in Seoul)"),
        (
            "*/15 6-21 * * 1-5",
            "America/New_York",
            "every 15 minutes from 06:00 to 21:45 New York, Monday to Friday (19:00 to 10:45 the next day in Seoul in "
            "summer, 20:00 to 11:45 the next day in winter)",
        ),
        ("0 3,15 * * *", "Asia/Seoul", "03:00 and 15:00 Seoul, every day"),
        ("*/2 * * * *", "Asia/Seoul", "every 2 minutes, every day"),
        ("* * * * *", "Asia/Seoul", "every minute, every day"),
        ("0 8 1 * *", "Asia/Seoul", "`0 8 1 * *` in Asia/Seoul"),
        ("0 8 * * 1-5/2", "Asia/Seoul", "`0 8 * * 1-5/2` in Asia/Seoul"),
        ("0 8 * * * | 0 12 * * *", "Asia/Seoul", "08:00 Seoul, every day; 12:00 Seoul, every day"),
    ],
)
def test_a_schedule_is_shown_in_its_zone_and_in_seoul(cron, zone, words):
    assert schedule_words(replace(STREAM.schedule, cron=cron, timezone=zone)) == words


def test_a_schedule_that_was_set_is_shown_in_the_upstreams_zone_too_and_says_where_it_was_set():
    moved = replace(
        STREAM.schedule, cron="0 9 * * 2-6", timezone="Asia/Seoul", market_timezone="America/New_York", is_set=True
    )
    assert schedule_words(moved) == (
        "09:00 Seoul, Tuesday to Saturday (20:00 the day before in New York in summer, 19:00 the day before in winter)"
        ", as set in config/schedules.yaml"
    )


def test_waiting_and_make_up_windows_are_said_in_hours_and_minutes():
    words = wait_words(STREAM.schedule)
    assert "asked again 25 min after the window opened, then every 30 min, until 5 h 25 min after it" in words
    assert "make-up windows open 10 min, 40 min, 4 h after it" in words
    assert "make-up" not in wait_words(replace(STREAM.schedule, make_up=()))
    assert "1 h after" in wait_words(replace(STREAM.schedule, retry_first=timedelta(hours=1)))


def test_a_page_tells_what_its_source_says_of_its_tables():
    assert "Look at market.x." in doc(replace(FINRA, about="Look at market.x."), [STREAM], "backfill")
    assert "\n\n\n" not in doc(FINRA, [STREAM], "backfill")


@pytest.mark.parametrize("source", registry.sources(), ids=lambda source: source.name)
def test_every_table_or_view_that_a_page_names_is_there(source, database):
    """Somebody types it as it stands there."""
    text = doc(source, source.streams, "backfill")
    with transaction(database) as connection:
        for name in sorted(set(re.findall(r"\b(?:market|filings)\.[a-z0-9_]+", text))):
            found = connection.execute("select to_regclass(%(n)s) as t, to_regproc(%(n)s) as f", {"n": name}).fetchone()
            assert found["t"] or found["f"], name


def test_a_page_with_many_windows_a_day_says_that_the_form_is_refused():
    page = doc(FINRA, FINRA.streams, "backfill", takes_form=False)
    assert "Backfill form is refused" in page
    assert "Backfill form works" not in page


def test_streams_with_keys_of_their_own_kind_are_told_apart():
    other = replace(STREAM, name="finra.other", keys_are="symbols", snapshot_only="ask for the list of today.")
    third = replace(STREAM, name="finra.third")
    words = f"for {STREAM.name} and finra.third: {STREAM.keys_are}; for finra.other: symbols"
    assert keys_words([STREAM, other, third]) == words
    assert keys_words([STREAM, STREAM]) == STREAM.keys_are
    assert "finra.other has no past to backfill: ask for the list of today." in doc(FINRA, [STREAM, other], "backfill")


def test_two_jobs_of_a_source_have_pages_that_are_told_apart_and_offer_no_past_that_there_is_not():
    sold = replace(STREAM, tables=(), job="weekly", snapshot_only="it shows what holds today.")
    page = doc(FINRA, [sold], "backfill")
    assert page.startswith(f"# {FINRA.title} (`finra_weekly`)\n\n- **{STREAM.name}** – {STREAM.title}.\n")
    assert "None of it can be backfilled" in page
    assert "mode=backfill`, `start_date`" not in page
    assert "mode=backfill`, `start_date`" in doc(FINRA, [STREAM, sold], "backfill")


def test_the_page_says_what_to_do_when_it_is_red_and_how_the_past_is_collected():
    page = doc(FINRA, FINRA.streams, "backfill")
    for words in (
        "REFUSED",
        "FAILED",
        "INTERRUPTED",
        "NOTHING DUE",
        "ANOTHER RUN",
        "BUDGET",
        "config/schedules.yaml",
        "mode=backfill",
        "mode=replay",
        'Its "to" is an instant',
        "dry_run",
        FINRA.terms,
    ):
        assert words in page
