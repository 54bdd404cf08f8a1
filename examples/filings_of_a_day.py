"""Filings of Korean companies on a day: what the model says of them, and which were known at an instant.

    ./run python -m examples.filings_of_a_day
    ./run python -m examples.filings_of_a_day 2026-09-16 --at 12:00

The list comes from the API (`/daybook/v1/disclosures`), what was known at the instant from the warehouse
(`dartbrief.disclosures_as_of`), and how the model takes a filing for shareholders from `dartbrief.analyses`.
"""

from __future__ import annotations

import argparse
from collections import Counter
from datetime import date, datetime, time
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from examples import reach

SEOUL = ZoneInfo("Asia/Seoul")
IMPACTS = ("positive", "neutral", "negative", "not read")


def filings(day: date) -> list[dict[str, Any]]:
    """All filings received on a day in Seoul, page by page, newest first."""
    found: list[dict[str, Any]] = []
    more: dict[str, str] = {}
    while True:
        page = reach.api("/disclosures", beginDate=str(day), endDate=str(day), limit="50", **more)
        found += page["items"]
        if page["nextCursor"] is None:
            return found
        more = {"cursor": page["nextCursor"]}


def known(day: date, at: datetime) -> set[str]:
    """Numbers of the day's filings that the list showed at an instant; none that we found later."""
    question = "select rcept_no from dartbrief.disclosures_as_of(%(at)s) where rcept_dt = %(day)s and was_seen"
    return {row["rcept_no"] for row in reach.rows(question, at=at, day=day)}


def impacts(numbers: list[str]) -> dict[str, str]:
    """How the model takes each filing for shareholders."""
    question = "select rcept_no, sentiment from dartbrief.analyses where rcept_no = any(%(n)s) and status = 'COMPLETED'"
    return {row["rcept_no"]: row["sentiment"] for row in reach.rows(question, n=numbers)}


def main() -> None:
    """Print the day's filings, and draw how many of each kind were known."""
    parser = argparse.ArgumentParser(
        prog="filings_of_a_day", description="Korean filings of a day, and what was known."
    )
    parser.add_argument("day", type=date.fromisoformat, nargs="?", help="day of receipt; default: the newest there is")
    parser.add_argument("--at", type=time.fromisoformat, default=time(9), help="time in Seoul; default 09:00")
    parser.add_argument("--picture", type=Path, default=Path("filings_of_a_day.png"))
    asked = parser.parse_args()
    newest = [] if asked.day else reach.api("/disclosures/recent", limit="10")["items"]
    if not asked.day and not newest:
        raise reach.Nothing("No filing is known here. Collect some: ./run cli poll --source dart")
    day = asked.day or date.fromisoformat(newest[0]["rceptDt"])
    found = filings(day)
    if not found:
        raise reach.Nothing(f"No filing of {day} is known here; on weekends and holidays there is none.")
    seen = known(day, datetime.combine(day, asked.at, SEOUL))
    said = impacts([filing["rceptNo"] for filing in found])
    counts: Counter[tuple[str, bool]] = Counter()
    for filing in found:
        number = filing["rceptNo"]
        impact, is_known = said.get(number, IMPACTS[-1]), number in seen
        counts[impact, is_known] += 1
        mark = "known" if is_known else "later"
        print(f"{number}  {mark}  {impact:8}  {filing['corpName']}: {filing['reportName']}")
        if filing["summary"]:
            print(f"{'':24}{filing['summary']}")
    clock, in_time = f"{asked.at:%H:%M}", sum(count for (_, is_known), count in counts.items() if is_known)
    print(f"{len(found)} filings of {day}, {in_time} known at {clock}")
    made = reach.figure(f"Korean filings of {day}: what the model says, and what was known at {clock} in Seoul")
    (axes,) = made.subplots(1, squeeze=False)[0]
    then, later = ([counts[impact, is_known] for impact in IMPACTS] for is_known in (True, False))
    axes.bar(IMPACTS, then, label=f"known at {clock}")
    axes.bar(IMPACTS, later, bottom=then, label="came later", alpha=0.5)
    axes.set_ylabel("filings")
    axes.legend()
    reach.save(made, asked.picture)


if __name__ == "__main__":
    reach.run(main)
