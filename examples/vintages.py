"""A macro series as it was first published, as it was known on a day, and as it stands now.

    ./run python -m examples.vintages HOUST --on 2026-03-01
    ./run python -m examples.vintages 722Y001.D --source ecos

First and last values are read from the published file, what was known on the day is asked of the warehouse
(`market.macro_as_of`). FRED keeps vintages itself, and what is held of them begins where they were collected; ECOS
keeps none, so that its first value is the one that was first seen here.
"""

from __future__ import annotations

import argparse
from datetime import date
from decimal import Decimal
from pathlib import Path

from examples import reach

STILL = date(9999, 12, 31)
Values = dict[date, Decimal]


def first_and_last(series: str, source: str) -> tuple[Values, Values]:
    """Each period's first published value and the one that stands; a period published as missing is in neither."""
    names = ["date", "value", "realtime_start", "realtime_end"]
    found = reach.Files().read(f"macro/{source}/observations.parquet", names, [("series_id", "=", series)])
    first: Values = {}
    last: Values = {}
    for row in sorted(found.to_pylist(), key=lambda row: row["realtime_start"]):
        if row["value"] is not None:
            first.setdefault(row["date"], row["value"])
            if row["realtime_end"] == STILL:
                last[row["date"]] = row["value"]
    return first, last


def known(series: str, source: str, day: date) -> Values:
    """What was known at the end of a day."""
    question = (
        "select period_start, value from market.macro_as_of(%(day)s)"
        " where series_id = %(series)s and source = %(source)s and value is not null order by 1"
    )
    asked = reach.rows(question, day=day, series=series, source=source)
    return {row["period_start"]: row["value"] for row in asked}


def main() -> None:
    """Print what was revised, and draw the three lines."""
    parser = argparse.ArgumentParser(prog="vintages", description="A macro series as known then and now.")
    parser.add_argument("series", help="as its publisher names it, e.g. HOUST")
    parser.add_argument("--source", choices=("fred", "ecos"), default="fred")
    parser.add_argument("--on", type=date.fromisoformat, metavar="DATE", help="what was known then, e.g. 2026-03-01")
    parser.add_argument("--since", type=date.fromisoformat, metavar="DATE", default=date(1, 1, 1), help="first period")
    parser.add_argument("--picture", type=Path, default=Path("vintages.png"))
    asked = parser.parse_args()
    first, last = first_and_last(asked.series, asked.source)
    then = known(asked.series, asked.source, asked.on) if asked.on else {}
    first, last, then = ({day: v for day, v in values.items() if day >= asked.since} for values in (first, last, then))
    if not last:
        raise reach.Nothing(f"Nothing of {asked.series} is in macro/{asked.source}/observations since {asked.since}.")
    revised = [day for day in sorted(last) if first[day] != last[day]]
    print(f"{len(last)} periods, {len(revised)} of them revised since they were first published")
    print(f"{'period':10}  {'first':>14}  {'known then':>14}  {'now':>14}")
    for day in sorted(last):
        if day in revised or then.get(day, last[day]) != last[day] or (asked.on and day not in then):
            shown = [f"{values[day].normalize():f}" if day in values else "–" for values in (first, then, last)]
            print(f"{day}  {shown[0]:>14}  {shown[1]:>14}  {shown[2]:>14}")
    made = reach.figure(f"{asked.series} ({asked.source}): first published, known then, and now")
    (axes,) = made.subplots(1, squeeze=False)[0]
    for name, values, style in (
        ("as first published", first, "C1--"), (f"as known on {asked.on}", then, "C2-."), ("as it stands", last, "C0-"),
    ):  # fmt: skip
        if values:
            axes.plot(sorted(values), [values[day] for day in sorted(values)], style, label=name)
    axes.legend()
    reach.save(made, asked.picture)


if __name__ == "__main__":
    reach.run(main)
