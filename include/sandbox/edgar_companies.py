"""Companies with XBRL facts, generated: one document each, as the SEC's interface and its bulk file give it.

Promises: shape follows what was measured on real documents (facts and concepts a company, periods repeated by later
filings, restated values, frames, nulls, odd units and taxonomies); the same seed, company and version give the same
bytes, and a later version only adds a filing. Never: a library that the project reads such documents with is used here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random

FIRST_CIK = 1_750
# Facts of a company: lognormal, cut off; shares of what is not usual.
MEDIAN, SIGMA, MOST = 4_200, 1.1, 40_000
NO_FACTS, FEW_FACTS, FOREIGN, TEXT_CIK = 0.07, 0.001, 0.065, 0.015
RESTATED, NEGATIVE, IS_DECIMAL = 0.04, 0.11, 0.055
CURRENCIES = ("EUR", "COP", "CAD", "JPY", "CNY", "BRL")
_WORDS = (
    "Assets",
    "Revenues",
    "Liabilities",
    "Equity",
    "Costs",
    "Inventory",
    "Leases",
    "Taxes",
    "Interest",
    "Goodwill",
)
_MORE = ("Current", "Noncurrent", "Net", "Gross", "Deferred", "Accrued", "Other", "Total", "Operating", "Foreign")
# What companies really report, by its place: at some places numbers of shares come, or amounts a share.
_US = [
    "Revenues",
    "NetIncomeLoss",
    "Assets",
    "Liabilities",
    "StockholdersEquity",
    "CashAndCashEquivalentsAtCarryingValue",
    "NetCashProvidedByUsedInOperatingActivities",
    "AssetsCurrent",
    "LiabilitiesCurrent",
    "OperatingIncomeLoss",
    "GrossProfit",
    "CostOfRevenue",
    "IncomeTaxExpenseBenefit",
    "InventoryNet",
    "EarningsPerShareBasic",
    "WeightedAverageNumberOfDilutedSharesOutstanding",
    "Goodwill",
    "PropertyPlantAndEquipmentNet",
    "LongTermDebt",
    "AccountsPayableCurrent",
    "PaymentsOfDividends",
    "InterestExpense",
    "NetCashProvidedByUsedInInvestingActivities",
    "NetCashProvidedByUsedInFinancingActivities",
    "ProfitLoss",
    "SellingGeneralAndAdministrativeExpense",
    "PaymentsToAcquirePropertyPlantAndEquipment",
    "EarningsPerShareDiluted",
]
_IFRS = [
    "Revenue",
    "ProfitLoss",
    "Assets",
    "Liabilities",
    "Equity",
    "CashAndCashEquivalents",
    "CashFlowsFromUsedInOperatingActivities",
    "BasicEarningsLossPerShare",
]
_REPORTED = {
    "us-gaap": dict(zip((*range(2, 9), *range(10, 27), 28, 29, 30, 53), _US, strict=True)),
    "ifrs-full": dict(zip((*range(2, 9), 17), _IFRS, strict=True)),
}
_STOCKS = [
    "Assets",
    "Liabilities",
    "StockholdersEquity",
    "Equity",
    "CashAndCashEquivalents",
    "CashAndCashEquivalentsAtCarryingValue",
    "AssetsCurrent",
    "LiabilitiesCurrent",
    "InventoryNet",
    "Goodwill",
    "PropertyPlantAndEquipmentNet",
    "LongTermDebt",
    "AccountsPayableCurrent",
]
_NAMES = (
    "Müller & Söhne",
    'The "Blue" Door',
    "Back\\slash Holdings",
    "North River",
    "한빛",
    "Granite",
    "Cedar",
    "Delta",
)


@dataclass(frozen=True)
class Filing:
    """A report: its accession, form, fiscal year and period, day of filing, and where its quarter ends."""

    accn: str
    form: str
    fy: int
    fp: str
    filed: str
    quarter: int


@dataclass(frozen=True)
class Company:
    """One company of a generated market; `version` counts the filings that came after the first day."""

    seed: int
    number: int
    version: int = 0
    facts_divisor: int = 1

    @property
    def cik(self) -> int:
        """Its number at the SEC."""
        return FIRST_CIK + self.number * 97

    @property
    def name(self) -> str:
        """The name of its member in the bulk file."""
        return f"CIK{self.cik:010d}.json"

    def document(self) -> bytes:
        """The document, compact as the SEC writes it."""
        dice = Random(f"{self.seed}/{self.number}")
        kind, text_cik = dice.random(), dice.random() < TEXT_CIK
        cik = f'"{self.cik:010d}"' if text_cik else str(self.cik)
        entity = _quoted(f"{dice.choice(_NAMES)} {self.number} Inc.") if dice.random() > 0.01 else '""'
        if kind < NO_FACTS and not self.version:
            none = dice.choice(("", ',"facts":{}'))
            return f'{{"cik":{cik},"entityName":{entity}{none}}}'.encode()
        few = kind < NO_FACTS + FEW_FACTS
        wanted = dice.randint(1, 5) if few else int(min(MEDIAN * math.exp(SIGMA * dice.gauss(0, 1)), MOST))
        wanted = max(wanted // self.facts_divisor, 1)
        is_foreign = dice.random() < FOREIGN
        taxonomies = self._taxonomies(dice, wanted, is_foreign=is_foreign)
        return f'{{"cik":{cik},"entityName":{entity},"facts":{{{",".join(taxonomies)}}}}}'.encode()

    # --- the filings

    def _filings(self, dice: Random, count: int, *, is_foreign: bool) -> list[Filing]:
        """The reports, oldest first: three quarters and a year, or years alone abroad."""
        last_quarter = 4 * 2026 + 1
        filings = []
        step = 4 if is_foreign else 1
        agent = self.cik if dice.random() < 0.7 else 950_170
        for index in range(count + self.version):
            # What is there on the first day ends at the same quarter, however much comes later.
            quarter = last_quarter - (count - 1 - index) * step
            year, place = divmod(quarter, 4)
            is_year = is_foreign or place == 3
            form = "20-F" if is_foreign else "10-K" if is_year else "10-Q"
            if index % 29 == 28:
                form += "/A"
            filed = _quarter_end(quarter, self._offset) + timedelta(days=60 if is_year else 35)
            accn = f"{agent:010d}-{filed.year % 100:02d}-{(self.number * 41 + index) % 1_000_000:06d}"
            filings.append(Filing(accn, form, year, "FY" if is_year else f"Q{place + 1}", filed.isoformat(), quarter))
        return filings

    @property
    def _offset(self) -> int:
        """By how many months its fiscal year ends before December."""
        return (0, 0, 0, 0, 0, 0, 0, 3, 6, 9)[self.number % 10]

    # --- the facts

    def _taxonomies(self, dice: Random, wanted: int, *, is_foreign: bool) -> list[str]:
        concepts = max(int(60 + 3 * math.sqrt(wanted)) if wanted > 120 else wanted // 2, 1)
        each = wanted / concepts
        filings = self._filings(dice, max(1, round(each / (2.2 if is_foreign else 2.9))), is_foreign=is_foreign)
        main = "ifrs-full" if is_foreign else "us-gaap"
        currency = dice.choice(CURRENCIES) if is_foreign else "USD"
        written: dict[str, list[str]] = {"dei": [], main: []}
        seed = dice.getrandbits(40)
        for index in range(concepts):
            taxonomy = "dei" if index < 2 else main
            reported = _REPORTED[main].get(index)
            concept = reported or f"{_WORDS[index % 10]}{_MORE[index // 10 % 10]}{index // 100 or ''}Item"
            is_unlabelled = is_foreign or index % 97 == 96
            label = (
                "null" if is_unlabelled else _quoted(f'{concept}, "net" of {index}' if index % 31 == 30 else concept)
            )
            about = (
                "null" if is_unlabelled else _quoted(f"The amount of {concept.lower()} as of the balance sheet date.")
            )
            units = self._units(seed + index, index, filings, currency, reported)
            written[taxonomy].append(f'"{concept}":{{"label":{label},"description":{about},"units":{{{units}}}}}')
        if self.number % 40 == 7:
            written["ecd"] = [self._without_period(seed, filings)]
        if self.number % 200 == 11:
            # Nobody has heard of it, and it is read like any other.
            written["new-taxonomy"] = [self._without_period(seed + 1, filings)]
        if self.number % 50 == 13:
            written[main].append('"NothingReported":{"label":"Nothing","description":null,"units":{}}')
        return [f'"{taxonomy}":{{{",".join(concepts)}}}' for taxonomy, concepts in written.items()]

    def _units(self, seed: int, index: int, filings: list[Filing], currency: str, reported: str | None) -> str:
        """The units of a concept; a few have two."""
        dice = Random(seed)
        is_decimal = index % 18 == 17
        unit = (
            (f"{currency}/shares" if index % 36 == 17 else "pure")
            if is_decimal
            else "shares"
            if index % 9 == 0
            else currency
        )
        by_chance = dice.random() < 0.55
        is_instant = by_chance if reported is None else reported in _STOCKS
        since = dice.randrange(max(len(filings) // 2, 1))
        rows = self._rows(dice, filings[since:] or filings, is_instant=is_instant, is_decimal=is_decimal)
        text = f'"{unit}":[{rows}]'
        if index % 60 == 59:
            more = self._rows(dice, filings[-1:], is_instant=is_instant, is_decimal=False)
            text += f',"{"EUR" if currency != "EUR" else "USD"}":[{more}]'
        return text

    def _rows(self, dice: Random, filings: list[Filing], *, is_instant: bool, is_decimal: bool) -> str:
        """The rows of one unit: every filing repeats periods of those before it."""
        found: dict[tuple[int, int], list[tuple[str, Filing]]] = {}
        size = 10 ** dice.randint(3, 11)
        sign = -1 if dice.random() < NEGATIVE else 1
        salt = dice.getrandbits(32)
        for filing in filings:
            for length, end in _periods(filing, is_instant=is_instant):
                there = found.setdefault((end, length), [])
                last = there[-1][0] if there else None
                is_restated = last is not None and hash_of(salt, end, length, filing.quarter) % 1_000 < RESTATED * 1_000
                value = last if last is not None and not is_restated else None
                if value is None:
                    number = hash_of(salt, end, length, filing.quarter if is_restated else 0)
                    value = _value(number, size, sign, is_decimal=is_decimal)
                there.append((value, filing))
        rows = []
        for end, length in sorted(found):
            there = found[end, length]
            until = _quarter_end(end, self._offset)
            start = ""
            if length:
                since = _quarter_end(end - length, self._offset) + timedelta(days=1)
                start = f'"start":"{since.isoformat()}",'
            frame = _frame(end, length) if hash_of(salt, end) % 100 < 85 else ""
            for place, (value, filing) in enumerate(there):
                marked = frame if place == len(there) - 1 else ""
                rows.append(
                    f'{{{start}"end":"{until.isoformat()}","val":{value},"accn":"{filing.accn}","fy":{filing.fy},'
                    f'"fp":"{filing.fp}","form":"{filing.form}","filed":"{filing.filed}"{marked}}}'
                )
        return ",".join(rows)

    def _without_period(self, seed: int, filings: list[Filing]) -> str:
        """A concept of a proxy statement, whose rows say no fiscal year; with extremes that filers write."""
        last = filings[-1]
        values = ("12345678901234567890", "-0", "0.00001234", "1.5E-7", "3E+3")
        ends = ("1011-12-31", "2050-03-31", "2025-12-31", "2024-02-29", "2023-12-31")
        rows = ",".join(
            f'{{"end":"{end}","val":{value},"accn":"{last.accn}","fy":null,"fp":null,"form":"DEF 14A",'
            f'"filed":"{last.filed}"}}'
            for value, end in zip(values, ends, strict=True)
        )
        return f'"PeoTotal{seed % 7}":{{"label":null,"description":null,"units":{{"USD":[{rows}],"Year":[]}}}}'


def hash_of(*parts: int) -> int:
    """A number that depends on all the parts, the same on every machine."""
    value = 0x9E3779B97F4A7C15
    for part in parts:
        value = (value ^ (part & 0xFFFFFFFFFFFF)) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
        value ^= value >> 29
    return value


def _value(number: int, size: int, sign: int, *, is_decimal: bool) -> str:
    if is_decimal:
        return f"{'-' if sign < 0 else ''}{number % 40}.{number // 64 % 10_000 or 5:04d}".rstrip("0")
    return str(sign * (number % size))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "\\u0026")
    return f'"{escaped}"'


def _quarter_end(quarter: int, offset: int) -> date:
    """The last day of a fiscal quarter, numbered from the year 0; `offset` months before the calendar's."""
    month = quarter * 3 + 3 - offset
    return date(month // 12, month % 12 + 1, 1) - timedelta(days=1)


def _periods(filing: Filing, *, is_instant: bool) -> list[tuple[int, int]]:
    """The periods that a report shows, as (length in quarters, last quarter)."""
    now, place = filing.quarter, filing.quarter % 4
    if is_instant:
        earlier = [now - 4, now - 8, now - 12] if filing.fp == "FY" else [now - place - 1, now - 4]
        return [(0, end) for end in (now, *earlier)]
    if filing.fp == "FY":
        return [(4, now), (4, now - 4), (4, now - 8)]
    same_year = [(place + 1, now), (place + 1, now - 4)] if place else []
    return [(1, now), (1, now - 4), *same_year]


def _frame(end: int, length: int) -> str:
    year, place = divmod(end, 4)
    if length in (2, 3):
        return ""
    name = f"CY{year}" if length == 4 else f"CY{year}Q{place + 1}{'' if length else 'I'}"
    return f',"frame":"{name}"'
