"""Adjusted closes of a US stock, and how much of its volume off exchange was sold short, from the published files.

    ./run python -m examples.short_share AAPL
    ./run python -m examples.short_share AAPL --months 2026-08 2026-09 --picture aapl.png

Volume is that of FINRA's consolidated file (CNMS): trades reported to its facilities, not those of exchanges. A share
of half is usual, as market makers sell short to whoever buys.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from datetime import date
from decimal import Decimal
from pathlib import Path

from examples import reach

CONSOLIDATED = "CNMS"
# Where bars of several feeds are held, the one of all exchanges: feeds are never mixed in one line.
FEEDS = ("sip", "iex")


def closes(files: reach.Files, symbol: str, months: list[str]) -> dict[date, Decimal]:
    """Closes adjusted for splits, by session."""
    found: dict[str, dict[date, Decimal]] = defaultdict(dict)
    wanted = [("symbol", "=", symbol), ("timeframe", "=", "1Day"), ("adjustment", "=", "split")]
    for month in months:
        bars = files.read(f"alpaca/bars/1d/{month}.parquet", ["session_date", "feed", "close"], wanted)
        for row in bars.to_pylist():
            # Prices without a fixed number of digits are text in the files, so that none of them is lost.
            found[row["feed"]][row["session_date"]] = Decimal(row["close"])
    return next((found[feed] for feed in (*FEEDS, *found) if feed in found), {})


def shares(files: reach.Files, symbol: str, months: list[str]) -> dict[date, Decimal]:
    """Volume sold short as a share of all that was reported, by session."""
    wanted = [("symbol", "=", symbol), ("facility", "=", CONSOLIDATED), ("total_volume", ">", Decimal(0))]
    found = {}
    for month in months:
        volumes = ["session_date", "short_volume", "total_volume"]
        for row in files.read(f"finra/short_volume/{month}.parquet", volumes, wanted).to_pylist():
            found[row["session_date"]] = row["short_volume"] / row["total_volume"]
    return found


def main() -> None:
    """Print closes and shares by session, and draw them."""
    parser = argparse.ArgumentParser(prog="short_share", description="Adjusted closes and short share of a stock.")
    parser.add_argument("symbol", help="as Alpaca and FINRA spell it, e.g. AAPL")
    parser.add_argument("--months", nargs="+", metavar="YYYY-MM", help="default: the last three that both have")
    parser.add_argument("--picture", type=Path, default=Path("short_share.png"))
    asked = parser.parse_args()
    files = reach.Files()
    both = sorted(set(files.months("alpaca/bars/1d")) & set(files.months("finra/short_volume")))
    months = asked.months or both[-3:]
    if not months:
        raise reach.Nothing("There is no month of which both alpaca/bars/1d and finra/short_volume are on the Hub.")
    price, share = closes(files, asked.symbol, months), shares(files, asked.symbol, months)
    if not price and not share:
        raise reach.Nothing(f"{asked.symbol} has neither bars nor short volume in {', '.join(months)}.")
    print(f"{'session':10}  {'close':>12}  {'short share':>11}")
    for day in sorted(price.keys() | share.keys()):
        close = f"{price[day]:,}" if day in price else "–"
        print(f"{day}  {close:>12}  {f'{share[day]:.4f}' if day in share else '–':>11}")
    made = reach.figure(f"{asked.symbol}: close adjusted for splits, and short share of volume off exchange")
    above, below = made.subplots(2, sharex=True, height_ratios=[2, 1])
    above.plot(sorted(price), [price[day] for day in sorted(price)], marker="o")
    above.set_ylabel("close, USD")
    below.bar(sorted(share), [float(share[day]) for day in sorted(share)])
    below.set_ylim(0, 1)
    below.set_ylabel("short share")
    made.autofmt_xdate()
    reach.save(made, asked.picture)


if __name__ == "__main__":
    reach.run(main)
