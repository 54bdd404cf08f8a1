"""A day of disclosures: each in the right state at the right time, and how long it took from its appearance."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.analysis.day import Day, latency
from tests.analysis.office import Office

LANES, SECONDS = 4, 10.0


def passed(office: Office, count: int, hours: float) -> str:
    """A day of so many filings with a model of four lanes and ten seconds, and the night after it."""
    office.permit(LANES)
    office.switch("seconds", value=SECONDS)
    office.switch("lanes", value=LANES)
    day = Day(office).made(count, hours)
    done = day.run(timedelta(hours=hours + 26))
    never = {number for number, there in day.there.items() if there is None}
    assert set(done) == set(day.appears) - never
    assert office.made() == dict.fromkeys(done, 1)
    for row in office.sql("select * from dartbrief.analysis_cache"):
        number, there = row["rcept_no"], day.there[row["rcept_no"]]
        if there is None:
            waited = row["updated_at"] - row["created_at"]
            assert (row["status"], row["is_permanent"], row["retry_count"]) == ("FAILED", True, 0)
            assert timedelta(hours=24) <= waited < timedelta(hours=24, minutes=6)
            continue
        assert (row["retry_count"], row["lost_count"]) == (0, 0)
        late = max(there - day.appears[number], timedelta(0))
        # One look for each five minutes that the document was late; fewer where the queue was long.
        assert row["body_retry_count"] <= late / timedelta(minutes=5) + 1
        assert (row["body_retry_count"] > 0) == (late > timedelta(0)) or row["body_retry_count"] == 0
    assert office.running.control("GET", "llm")["most_at_once"] <= LANES
    assert office.slots() == 0
    found = latency(day, done, LANES, SECONDS)
    assert found.median / found.bound_median < 3
    return found.words


def test_a_small_day_ends_with_every_filing_where_it_belongs(office: Office) -> None:
    passed(office, 16, 0.05)


@pytest.mark.chaos
def test_a_whole_day_of_1500_filings(office: Office) -> None:
    print(f"\n1,500 filings, cap {LANES}, a model of {SECONDS:.0f} s: {passed(office, 1_500, 11.0)}")
