"""Generated FINRA short-sale files, byte for byte in the upstream's form.

Promises: a file is decided by seed, market size, day, facility and edition alone; the consolidated file is
the sum of the facilities' files of the same edition. Never: a clock is read here, and no volume is a binary
float.
"""

from __future__ import annotations

import random
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache

CONSOLIDATED = "CNMS"

# Facility prefix → letter in the column Market and first day of its files.
FACILITIES: Mapping[str, tuple[str, date]] = {
    "FNSQ": ("Q", date(2009, 11, 2)),
    "FNQC": ("B", date(2018, 9, 10)),
    "FNYX": ("N", date(2009, 11, 2)),
    "FNRA": ("D", date(2009, 11, 2)),
    "FORF": ("O", date(2009, 11, 2)),
}
PARTS = ("FNQC", "FNSQ", "FNYX", "FNRA")
HISTORY: Mapping[str, date] = {
    CONSOLIDATED: date(2018, 8, 1),
    **{prefix: first for prefix, (_, first) in FACILITIES.items()},
}

EXEMPT_SINCE = date(2011, 2, 28)
DECIMALS_SINCE = date(2026, 2, 23)
MICRO = 1_000_000

# Tickers that a careless reader destroys: words read as null or true, a slash, letters whose case matters.
ODD = (
    "A", "AA", "AAPL", "ABR", "ABRpD", "ABRpE", "BRK/A", "BRK/B", "F", "GME", "INF", "MSFT", "NA", "NAN",
    "NULL", "NVDA", "SPY", "T", "TRUE", "TSLA", "TW", "TWw", "XYZ", "XYZ/WS", "XYZw",
)  # fmt: skip
ODD_OTC = ("NANOF", "NULLF", "TRUEY")

# How likely a symbol is to trade at a facility on a day, and the facility's part of its volume.
PRESENCE = {"FNSQ": (0.97, 1.0), "FNQC": (0.45, 0.04), "FNYX": (0.72, 0.3), "FORF": (0.9, 0.5)}
SOME_ADF_DAYS = 0.25


@dataclass(frozen=True)
class Edition:
    """Which version of a day's files: 0 is the first one published; `withdrawn` symbols are left out."""

    revision: int = 0
    withdrawn: frozenset[str] = frozenset()


FIRST = Edition()


@dataclass(frozen=True)
class Volume:
    """A number of shares in millionths; `decimal` tells whether it is written with six places."""

    micro: int
    decimal: bool = False

    def __add__(self, other: Volume) -> Volume:
        return Volume(self.micro + other.micro, self.decimal or other.decimal)

    def text(self) -> str:
        """As the file writes it: whole, or with six decimal places."""
        whole, rest = divmod(self.micro, MICRO)
        return f"{whole}.{rest:06d}" if self.decimal else str(whole)


@dataclass(frozen=True)
class Row:
    """One symbol's line: exempt ≤ short ≤ total."""

    symbol: str
    short: Volume
    exempt: Volume
    total: Volume
    market: str


@dataclass(frozen=True)
class Market:
    """The generated market: all files of one seed and size."""

    seed: int
    companies: int

    def rows(self, day: date, prefix: str, edition: Edition = FIRST) -> tuple[Row, ...]:
        """The rows of one file in file order."""
        if prefix == CONSOLIDATED:
            parts = [part for part in PARTS if day >= HISTORY[part]]
            rows = _summed(self.rows(day, part, edition) for part in parts)
        else:
            rows = _facility_rows(self, day, prefix, edition.revision)
        return tuple(row for row in rows if row.symbol not in edition.withdrawn)

    def file(self, day: date, prefix: str, edition: Edition = FIRST) -> bytes:
        """The bytes of one file."""
        return _file(self, day, prefix, edition)

    def some_symbols(self, day: date, count: int) -> frozenset[str]:
        """So many symbols of the day, the same ones at every call: what a revision withdraws."""
        present = [row.symbol for row in self.rows(day, "FNSQ")]
        return frozenset(_dice(self, day, "withdrawn").sample(present, min(count, len(present))))


def _dice(market: Market, *words: object) -> random.Random:
    return random.Random("/".join(str(word) for word in (market.seed, market.companies, *words)))


@lru_cache(maxsize=8)
def symbols(seed: int, count: int, otc: bool = False) -> tuple[tuple[str, float], ...]:
    """The market's symbols with their weight (typical shares a day), in the order of the files."""
    dice = random.Random(f"{seed}/symbols/{count}/{otc}")
    fixed = ODD_OTC if otc else ODD
    names = dict.fromkeys(fixed[: max(1, count)])
    while len(names) < count:
        name = "".join(dice.choices(string.ascii_uppercase, k=4 if otc else dice.choice((3, 3, 4, 4, 4))))
        if otc:
            name += dice.choice("FY")
        else:
            kind = dice.random()
            if kind > 0.93:
                name += dice.choice(("pA", "pB", "pC", "/WS", "/U", "/A", "w", "r"))
        names.setdefault(name)
    return tuple(sorted((name, 10 ** dice.uniform(2.0, 7.0)) for name in names))


@lru_cache(maxsize=64)
def _facility_rows(market: Market, day: date, prefix: str, revision: int) -> tuple[Row, ...]:
    rows = _first_rows(market, day, prefix)
    if not revision or not rows:
        return rows
    dice = _dice(market, day, prefix, "revision", revision)
    changed = dice.sample(range(len(rows)), 1 + len(rows) // 50)
    result = list(rows)
    for index in changed:
        row = result[index]
        more = Volume(dice.randrange(1, 5000) * MICRO)
        late = Volume(dice.randrange(0, more.micro // MICRO + 1) * MICRO)
        result[index] = replace(row, total=row.total + more, short=row.short + late)
    return tuple(result)


def _first_rows(market: Market, day: date, prefix: str) -> tuple[Row, ...]:
    letter = FACILITIES[prefix][0]
    dice = _dice(market, day, prefix)
    otc = prefix == "FORF"
    universe = symbols(market.seed, max(1, market.companies // 3) if otc else market.companies, otc)
    if prefix == "FNRA":
        if dice.random() > SOME_ADF_DAYS:
            return ()
        chosen = sorted(dice.sample(universe, min(len(universe), dice.randint(1, 5))))
        return tuple(_row(dice, symbol, weight * 0.001, letter, day, otc) for symbol, weight in chosen)
    presence, share = PRESENCE[prefix]
    return tuple(
        _row(dice, symbol, weight * share, letter, day, otc) for symbol, weight in universe if dice.random() < presence
    )


def _row(dice: random.Random, symbol: str, weight: float, market: str, day: date, otc: bool) -> Row:
    whole = 1 + int(weight * dice.lognormvariate(0.0, 0.8))
    short = int(whole * dice.triangular(0.0, 1.0, 0.48))
    exempt = int(short * max(0.0, dice.uniform(-0.08, 0.06)))
    total = Volume(whole * MICRO)
    sold = Volume(short * MICRO)
    # Fractions of shares are reported to the facilities since that day, over the counter not yet.
    if day >= DECIMALS_SINCE and not otc:
        if dice.random() < 0.55:
            total = Volume(whole * MICRO + dice.randrange(0, MICRO), decimal=True)
        if short < whole and dice.random() < 0.4:
            # Seldom a fraction of nothing, which is written all the same: 7270.000000.
            part = dice.randrange(0, MICRO) if dice.random() < 0.95 else 0
            sold = Volume(short * MICRO + part, decimal=True)
    return Row(symbol, sold, Volume(exempt * MICRO), total, market)


def _summed(files: Iterable[tuple[Row, ...]]) -> tuple[Row, ...]:
    """One row per symbol over several files; the market column lists where it traded."""
    by_symbol: dict[str, Row] = {}
    for rows in files:
        for row in rows:
            held = by_symbol.get(row.symbol)
            by_symbol[row.symbol] = row if held is None else _together(held, row)
    return tuple(by_symbol[symbol] for symbol in sorted(by_symbol))


def _together(one: Row, other: Row) -> Row:
    return Row(
        one.symbol,
        one.short + other.short,
        one.exempt + other.exempt,
        one.total + other.total,
        f"{one.market},{other.market}",
    )


@lru_cache(maxsize=64)
def _file(market: Market, day: date, prefix: str, edition: Edition) -> bytes:
    return written(day, market.rows(day, prefix, edition))


def written(day: date, rows: Iterable[Row], *, header: str | None = None) -> bytes:
    """Rows as a file: header, lines, and their number as the trailer, each ended by CR LF."""
    exempt = day >= EXEMPT_SINCE
    columns = (
        "Date",
        "Symbol",
        "ShortVolume",
        *(("ShortExemptVolume",) if exempt else ()),
        "TotalVolume",
        "Market",
    )
    lines = [header or "|".join(columns)]
    stamp = day.strftime("%Y%m%d")
    for row in rows:
        volumes = (row.short, *((row.exempt,) if exempt else ()), row.total)
        lines.append("|".join((stamp, row.symbol, *(volume.text() for volume in volumes), row.market)))
    lines.append(str(len(lines) - 1))
    return "".join(line + "\r\n" for line in lines).encode("ascii")
