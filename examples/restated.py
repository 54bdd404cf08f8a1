"""A figure of a company that files with the SEC, as known at the end of a day and as it stands now, by period.

    ./run python -m examples.restated 320193 us-gaap:Assets --on 2026-06-30

Both are asked of the warehouse (`filings.sec_facts_as_of`): the newest filing that had been accepted by the instant
counts, so what was restated later shows. Only whole-company figures in one unit are shown: those without dimensions.
"""

from __future__ import annotations

import argparse
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

from examples import reach

NEW_YORK = ZoneInfo("America/New_York")
# A period is its last day and, for what is summed over one, how many days it has.
Period = tuple[date, int]


def known(cik: int, concept: str, unit: str, at: datetime) -> dict[Period, tuple[Decimal, str]]:
    """Each period's value with the filing that gave it, as known at an instant."""
    question = (
        "select period_start, period_end, value, accession from filings.sec_facts_as_of(%(at)s)"
        " where entity = %(entity)s and concept = %(concept)s and measure = %(unit)s and dimensions is null"
        " and period_end is not null and value is not null order by known_at"
    )
    found = {}
    for row in reach.rows(question, at=at, entity=f"{cik:010}", concept=concept, unit=unit):
        length = (row["period_end"] - row["period_start"]).days + 1 if row["period_start"] else 0
        found[row["period_end"], length] = (row["value"], row["accession"])
    return found


def main() -> None:
    """Print each period's value then and now, and draw both."""
    parser = argparse.ArgumentParser(prog="restated", description="A company's figure as known on a day and now.")
    parser.add_argument("cik", type=int, help="the company's number at the SEC, e.g. 320193")
    parser.add_argument("concept", help="with its prefix, e.g. us-gaap:Assets")
    parser.add_argument("--unit", default="USD")
    parser.add_argument("--on", type=date.fromisoformat, metavar="DATE", help="a day in New York; default: yesterday")
    parser.add_argument("--picture", type=Path, default=Path("restated.png"))
    asked = parser.parse_args()
    (clock,) = reach.rows("select collect.clock() as now")
    day = asked.on or clock["now"].astimezone(NEW_YORK).date() - timedelta(days=1)
    end = datetime.combine(day + timedelta(days=1), time(), NEW_YORK)
    now = known(asked.cik, asked.concept, asked.unit, clock["now"])
    then = known(asked.cik, asked.concept, asked.unit, end)
    if not now:
        raise reach.Nothing(f"No filing of {asked.cik} that is held gives {asked.concept} in {asked.unit}.")
    print(f"{'period end':10}  {'days':>4}  {f'on {day}':>20}  {'now':>20}  filing")
    for (last, days), (value, filing) in sorted(now.items()):
        before = f"{then[last, days][0].normalize():,f}" if (last, days) in then else "–"
        print(f"{last}  {days or '–':>4}  {before:>20}  {f'{value.normalize():,f}':>20}  {filing}")
    longest = max(days for _, days in now)
    made = reach.figure(f"{asked.concept} of {asked.cik}, {asked.unit}: as known on {day} and now")
    (axes,) = made.subplots(1, squeeze=False)[0]
    for name, values, style in (("now", now, "C0o-"), (f"on {day}", then, "C1x--")):
        line = sorted((last, value) for (last, days), (value, _) in values.items() if days == longest)
        axes.plot([last for last, _ in line], [value for _, value in line], style, label=name)
    axes.legend()
    reach.save(made, asked.picture)


if __name__ == "__main__":
    reach.run(main)
