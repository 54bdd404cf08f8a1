"""A market that files with the SEC: who files what, when it is accepted, filed, listed and withdrawn.

Promises: everything follows from the seed, so that a day is the same whenever and however it is asked for; the mix of
forms, hours and parties is like the real one. Never: nothing here knows how it is shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from random import Random
from zoneinfo import ZoneInfo

from include.calendars import calendar

NEW_YORK = ZoneInfo("America/New_York")
DAYS = calendar("US_FEDERAL")

# Companies that everybody knows come first, under their own numbers.
KNOWN = (
    (320193, "Apple Inc.", "AAPL"),
    (789019, "MICROSOFT CORP", "MSFT"),
    (1018724, "AMAZON COM INC", "AMZN"),
    (1045810, "NVIDIA CORP", "NVDA"),
    (1318605, "Tesla, Inc.", "TSLA"),
    (1652044, "Alphabet Inc.", "GOOGL"),
)
# Names that break what is careless with them.
ODD_NAMES = ("Smith & Sons <Holdings>", "O'Neil (UK) Ltd", "Société Générale du Café S.A.", "3456 Lake | Shore LLC")

AGENTS = (950170, 1193125, 1104659, 1213900, 1493152, 1140361, 1062993, 1127602)
EFFECTS, LETTERS = 9999999995, 0

# How many of a thousand filings are accepted in each hour of New York, from six on.
HOURS = (38, 27, 46, 78, 61, 57, 41, 56, 38, 40, 191, 157, 76, 46, 34, 13, 1)
# Form, weight, kind of parties.
FORMS = (
    ("4", 330, "owners"), ("8-K", 150, "filer"), ("424B2", 120, "filers"), ("144", 55, "subject"), ("6-K", 50, "filer"),
    ("D", 45, "filer"), ("10-Q", 35, "filer"), ("SCHEDULE 13G", 30, "filed"), ("SCHEDULE 13G/A", 25, "filed"),
    ("3", 25, "owners"), ("497", 20, "filer"), ("DEF 14A", 15, "filer"), ("10-K", 15, "filer"), ("S-8", 12, "filer"),
    ("NPORT-P", 12, "filer"), ("13F-HR", 12, "filer"), ("4/A", 10, "owners"), ("SCHEDULE 13D/A", 10, "filed"),
    ("FWP", 8, "filers"), ("8-K/A", 5, "filer"), ("1-A POS", 4, "filer"), ("D/A", 4, "filer"), ("20-F", 3, "filer"),
    ("X-17A-5", 3, "filer"), ("10-K/A", 2, "filer"),
)  # fmt: skip
# Filed on the same day until ten at night.
SAME_DAY = frozenset({"3", "4", "5", "4/A", "144", "SCHEDULE 13D", "SCHEDULE 13G", "SCHEDULE 13D/A", "SCHEDULE 13G/A"})
ITEMS = ("Item 2.02: Results of Operations and Financial Condition", "Item 9.01: Financial Statements and Exhibits")


@dataclass(frozen=True)
class Party:
    """Who takes part in a filing, and as what."""

    cik: int
    name: str
    role: str


@dataclass(frozen=True)
class Filing:
    """One filing: what, by whom, when.

    `accepted` is in New York's zone, `shown_after` how long after that the feed and `text_after` the archive have it;
    `listed` is the day in whose index it is. `also` are further form types under which the indexes list it; a `quiet`
    one is in no feed and in no daily index, and surfaces in a quarterly one from `listed` on.
    """

    accession: str
    form: str
    filed: date
    accepted: datetime
    parties: tuple[Party, ...]
    size: int
    seed: str
    listed: date
    items: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    quiet: bool = False
    shown_after: timedelta = field(default=timedelta(0))
    text_after: timedelta = field(default=timedelta(0))

    @property
    def shown_at(self) -> datetime:
        """When the feed shows it."""
        return self.accepted + self.shown_after


MOST_BY_ITSELF = 100


@dataclass(frozen=True)
class Market:
    """The generated market: its companies, and `a_day` filings on a business day.

    Where that is None, there are as many as companies, but no more than somebody who only looks on wants to wait for.
    """

    seed: int
    companies: int
    a_day: int | None = None

    @property
    def filings_a_day(self) -> int:
        """How many filings of the usual kind a business day has."""
        return self.a_day if self.a_day is not None else min(max(self.companies, 10), MOST_BY_ITSELF)

    @property
    def _block(self) -> int:
        return -(-self.filings_a_day // len(AGENTS)) + 1

    def company(self, number: int) -> tuple[int, str, str]:
        """CIK, name and ticker of a company."""
        if number < len(KNOWN):
            return KNOWN[number]
        name = ODD_NAMES[number % 97] if number % 97 < len(ODD_NAMES) else f"EXAMPLE {number} CORP /DE/"
        return 1_400_000 + number * 13, name, f"X{_letters(number)}"

    def number_of(self, cik: int) -> int | None:
        """The number of a company by its CIK; None where it is none of the market's."""
        known = next((number for number, (each, *_) in enumerate(KNOWN) if each == cik), None)
        if known is not None:
            return known if known < self.companies else None
        number, rest = divmod(cik - 1_400_000, 13)
        return number if not rest and len(KNOWN) <= number < self.companies else None

    def of_day(self, day: date) -> tuple[Filing, ...]:
        """What was accepted on a day of New York, in order of acceptance."""
        return _of_day(self, day)

    def between(self, first: date, last: date) -> Iterator[Filing]:
        """What was accepted from one day to another, both inclusive."""
        for offset in range((last - first).days + 1):
            yield from self.of_day(first + timedelta(days=offset))

    def found(self, accession: str) -> Filing | None:
        """The filing of a number; None where there is none."""
        submitter, year, sequence = int(accession[:10]), int(accession[11:13]), int(accession[14:])
        block = self._block if submitter in AGENTS else 100
        day = date(2000 + year, 1, 1) + timedelta(days=sequence // block)
        return next((each for each in self.of_day(day) if each.accession == accession), None)

    def _make(self, day: date) -> Iterator[Filing]:
        random = Random(f"{self.seed}/{day}/sec")
        for index in range(self.filings_a_day):
            yield self._usual(random, day, index)
        yield from self._special(random, day)

    def _usual(self, random: Random, day: date, index: int) -> Filing:
        form, _, kind = random.choices(FORMS, weights=[weight for _, weight, _ in FORMS])[0]
        hour = random.choices(range(len(HOURS)), weights=HOURS)[0] + 6
        accepted = datetime.combine(
            day, time(hour, random.randrange(60) if hour < 22 else random.randrange(4)), NEW_YORK
        )
        accepted += timedelta(seconds=random.randrange(60))
        agent, place = index % len(AGENTS), index // len(AGENTS)
        number = (day - date(day.year, 1, 1)).days * self._block + place
        return self._filing(
            random, form, kind, accepted, f"{AGENTS[agent]:010d}-{day:%y}-{number:06d}", is_late=random.random() < 0.02
        )

    def _filing(
        self, random: Random, form: str, kind: str, accepted: datetime, accession: str, *, is_late: bool = False
    ) -> Filing:
        day = accepted.date()
        is_next = accepted.time() > time(17, 30) and form not in SAME_DAY
        filed = DAYS.session_offset(day, 1) if is_next else day
        return Filing(
            accession=accession,
            form=form,
            filed=filed,
            accepted=accepted,
            parties=self._parties(random, kind),
            size=int(random.lognormvariate(10, 1.5)) + 900,
            seed=f"{self.seed}/{accession}",
            listed=filed,
            items=ITEMS if form.startswith("8-K") else (),
            shown_after=timedelta(seconds=random.choice((0,) * 49 + (110,))),
            text_after=timedelta(minutes=random.randrange(20, 60)) if is_late else timedelta(0),
        )

    def _special(self, random: Random, day: date) -> Iterator[Filing]:
        """What is rare, and there every day: see the comments."""
        prefix = f"{AGENTS[0]:010d}-{day:%y}-"
        base = (day - date(day.year, 1, 1)).days * self._block
        company = self._one(random, "Filer")
        # An amendment is accepted before its original; the feed shows the newest first, so that both orders occur.
        original = self._filing(random, "10-K", "filer", _at(day, 15, 10), f"{prefix}{base + self._block - 1:06d}")
        yield replace(original, parties=(company,))
        ahead = f"{AGENTS[1]:010d}-{day:%y}-{base + self._block - 1:06d}"
        yield replace(self._filing(random, "10-K/A", "filer", _at(day, 14, 40), ahead), parties=(company,))
        # One filing under two form types.
        two = f"{AGENTS[2]:010d}-{day:%y}-{base + self._block - 1:06d}"
        offer = self._filing(random, "SC TO-T/A", "filed", _at(day, 16, 45), two)
        yield replace(offer, also=("SCHEDULE 13D/A",))
        # What the SEC makes itself comes at a quarter past midnight, with the filing date of the day before.
        number = (day - date(day.year, 1, 1)).days * 100
        effect = self._filing(random, "EFFECT", "filer", _at(day, 0, 15), f"{EFFECTS:010d}-{day:%y}-{number:06d}")
        yield replace(effect, filed=DAYS.session_offset(day, -1))
        # A letter of the SEC surfaces weeks later, with its old filing date, and only in the index of that quarter.
        old = DAYS.session_offset(day, -28)
        letter = self._filing(random, "UPLOAD", "filed for", _at(day, 9, 0), f"{LETTERS:010d}-{day:%y}-{number:06d}")
        yield replace(letter, filed=old, quiet=True)

    def _one(self, random: Random, role: str) -> Party:
        cik, name, _ = self.company(random.randrange(self.companies))
        return Party(cik, name, role)

    def _person(self, random: Random, role: str) -> Party:
        number = random.randrange(max(3 * self.companies, 10))
        return Party(1_900_000 + number * 7, f"Doe {_letters(number).title()} J.", role)

    def _parties(self, random: Random, kind: str) -> tuple[Party, ...]:
        if kind == "owners":
            people = [self._person(random, "Reporting") for _ in range(random.choice((1, 1, 1, 1, 2, 3)))]
            return _distinct((*people, self._one(random, "Issuer")))
        if kind in ("filed", "subject"):
            return _distinct((self._one(random, "Subject"), self._person(random, "Filed by")))
        if kind == "filers":
            return _distinct(self._one(random, "Filer") for _ in range(random.choice((1, 1, 2))))
        return (self._one(random, "Filer"),)


def _distinct(parties: Iterator[Party] | tuple[Party, ...]) -> tuple[Party, ...]:
    return tuple({party.cik: party for party in parties}.values())


def _at(day: date, hour: int, minute: int) -> datetime:
    return datetime.combine(day, time(hour, minute), NEW_YORK)


def _letters(number: int) -> str:
    text = ""
    while True:
        text = chr(65 + number % 26) + text
        number = number // 26 - 1
        if number < 0:
            return text


@lru_cache(maxsize=400)
def _of_day(market: Market, day: date) -> tuple[Filing, ...]:
    if not DAYS.is_session(day):
        return ()
    return tuple(sorted(market._make(day), key=lambda filing: (filing.accepted, filing.accession)))
