"""Companies and their filings as DART would have them: generated, with corrections, marks and withdrawals over time.

Promises: pure questions about any instant; a filing is there from its own second on, and what is marked later is not
marked before. Receipt numbers are not in order of time, as exchange disclosures have numbers of their own. Never: a
filing on a weekend, on a day that Korea has off, or outside of 07:30 to 18:30 in Seoul.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from functools import cached_property, lru_cache
from random import Random

from include.sandbox.dart_periodic import FIRST_NUMBER, Market, Report, has_subsidiaries, is_open
from include.sandbox.dart_periodic import SEOUL as SEOUL

OPENS, CLOSES = time(7, 30), time(18, 30)
# 1,500 filings a day for 2,700 listed companies.
FILINGS_OF_A_COMPANY = 1_500 / 2_700
# A list of companies holds about forty that were never listed for each one that is.
UNLISTED_OF_A_LISTED = 40
CORRECTIONS_OF_A_FILING = 0.08
# A correction comes at most so many days after what it corrects.
LOOKS_BACK = 5

_FIRST = (
    "가온",
    "나래",
    "다솜",
    "라온",
    "마루",
    "바론",
    "사람",
    "아라",
    "자람",
    "차올",
    "카이",
    "타래",
    "파랑",
    "하늘",
)
_SECOND = ("전자", "화학", "건설", "바이오", "금융지주", "소프트", "에너지", "물산", "식품", "리츠", "메디칼", "&씨")
# Title, letter of its kind, whether the exchange takes it in, how often.
_TITLES = (
    ("단일판매ㆍ공급계약체결", "I", True, 18),
    ("임원ㆍ주요주주특정증권등소유상황보고서", "D", False, 22),
    ("주식등의대량보유상황보고서(일반)", "D", False, 10),
    ("타법인주식및출자증권취득결정", "I", True, 6),
    ("기업설명회(IR)개최(안내공시)", "I", True, 12),
    ("주요사항보고서(유상증자결정)", "B", False, 5),
    ("주주총회소집결의", "I", True, 5),
    ("기타경영사항(자율공시)", "I", True, 9),
    ("수시공시의무관련사항(공정공시)", "I", True, 8),
    ("증권신고서(지분증권)", "C", False, 2),
    ("감사보고서제출", "I", True, 3),
)
FLAGS = {"Y": "유", "K": "코", "N": "넥", "E": ""}


@dataclass(frozen=True)
class Company:
    """One company: its number, names, stock code where it ever had one, and market."""

    corp_code: str
    name: str
    english: str
    stock_code: str
    market: str
    changed: date


@dataclass(frozen=True)
class Filing:
    """One filing: who filed what, its number, the second from which it is there, and what it corrects."""

    company: Company
    title: str
    kind: str
    rcept_no: str
    at: datetime
    submitter: str
    remark: str
    corrects: str | None = None
    corrected_at: datetime | None = None

    @property
    def day(self) -> date:
        """The day of receipt."""
        return self.at.astimezone(SEOUL).date()


@dataclass(frozen=True)
class Events:
    """What the switches said of filings, by their numbers.

    Filings that are added, from when one is withdrawn or not shown any more, from when its document can be had, and
    whose archives are cut off.
    """

    added: tuple[Filing, ...] = ()
    withdrawn: Mapping[str, datetime] = field(default_factory=dict)
    hidden: Mapping[str, datetime] = field(default_factory=dict)
    documents: Mapping[str, datetime] = field(default_factory=dict)
    cut: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Filings:
    """Everything that was ever filed, by seed and size, with the events."""

    seed: int
    size: int
    events: Events = field(default_factory=Events)

    @cached_property
    def listed(self) -> tuple[Company, ...]:
        """The companies that file."""
        return tuple(_company(self.seed, n, is_listed=True) for n in range(self.size))

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Which of the companies that file has which number."""
        return {company.corp_code: place for place, company in enumerate(self.listed)}

    @cached_property
    def market(self) -> Market:
        """The periodic reports among the filings, and when DART has their data."""
        return Market(self.seed, self.size)

    @cached_property
    def companies(self) -> tuple[Company, ...]:
        """All companies, those that are or were listed first."""
        return (
            *self.listed,
            *(_company(self.seed, n, is_listed=False) for n in range(self.size * UNLISTED_OF_A_LISTED)),
        )

    def of_day(self, day: date) -> list[Filing]:
        """Return everything received on a day, whenever, in order of the numbers."""
        made = [
            *_originals(self.seed, self.size, day),
            *_corrections(self.seed, self.size, day),
            *_reports(self.market, day),
            *(each for each in self.events.added if each.day == day),
        ]
        return sorted(made, key=lambda each: each.rcept_no)

    def filing(self, number: str, at: datetime) -> Filing | None:
        """Return the filing of a number, where it is there at an instant."""
        try:
            day = datetime.strptime(number[:8], "%Y%m%d").date()  # noqa: DTZ007  (a day has no zone)
        except ValueError:
            return None
        return next((each for each in self.of_day(day) if each.rcept_no == number and each.at <= at), None)

    def shown(self, day: date, at: datetime) -> list[tuple[Filing, str]]:
        """Return what a list of a day shows at an instant, each with its marks as of then."""
        hidden = self.events.hidden
        there = [
            each
            for each in self.of_day(day)
            if each.at <= at and not (each.rcept_no in hidden and hidden[each.rcept_no] <= at)
        ]
        corrected = self._corrected(day, at) if there else {}
        return [(each, self._marks(each, corrected, at)) for each in there]

    def _corrected(self, day: date, at: datetime) -> dict[str, datetime]:
        """Return which filings of a day had a correction by an instant."""
        last, found = min(day + timedelta(days=LOOKS_BACK), at.astimezone(SEOUL).date()), {}
        while day <= last:
            for each in self.of_day(day):
                if each.corrects and each.at <= at:
                    found[each.corrects] = each.at
            day += timedelta(days=1)
        return found

    def _marks(self, filing: Filing, corrected: Mapping[str, datetime], at: datetime) -> str:
        is_corrected = filing.corrected_at is not None and filing.corrected_at <= at
        marks = filing.remark + ("정" if is_corrected or filing.rcept_no in corrected else "")
        withdrawn = self.events.withdrawn.get(filing.rcept_no)
        return marks + ("철" if withdrawn is not None and withdrawn <= at else "")


@lru_cache(maxsize=1 << 16)
def _company(seed: int, n: int, *, is_listed: bool) -> Company:
    chance = Random(f"{seed}/{'listed' if is_listed else 'other'}/{n}")
    name = f"{chance.choice(_FIRST)}{chance.choice(_SECOND)}" + (f"{n // 50}" if n >= 50 else "")
    number = 100_000 + n * 7 + (0 if is_listed else 1_000_003)
    code, market = " ", "E"
    if is_listed:
        # Some new ones have a letter in their code.
        code = f"{n * 10 + 3_000:06}" if n % 20 else f"00{n % 90 + 10}A0"
        market = "Y" if n % 3 == 0 else "N" if n % 31 == 30 else "K"
    day = date(2017, 6, 30) + timedelta(days=chance.randrange(0, 3_300))
    return Company(f"{number:08}", name, f"{name.encode().hex()[:8].upper()} & Co., Ltd.", code, market, day)


@lru_cache(maxsize=4_096)
def _originals(seed: int, size: int, day: date) -> tuple[Filing, ...]:
    """What is filed on a day for the first time."""
    if not is_open(day):
        return ()
    chance = Random(f"{seed}/filings/{day}")
    count = max(round(size * FILINGS_OF_A_COMPANY * chance.uniform(0.75, 1.1)), 2)
    weights = [weight for *_, weight in _TITLES]
    found = []
    for number in range(1, count + 1):
        company = _company(seed, chance.randrange(size), is_listed=True)
        title, kind, at_exchange, _ = chance.choices(_TITLES, weights)[0]
        padding = " " * (chance.randrange(1, 20) if chance.random() < 0.1 else 0)
        person = f"{chance.choice('김이박최정')}{chance.choice('영서지하')}{chance.choice('수진호')}"
        found.append(
            Filing(
                company,
                title + padding,
                kind,
                number_of(day, number, at_exchange=at_exchange),
                _some_second(day, chance),
                person if kind == "D" else company.name,
                FLAGS[company.market],
            )
        )
    return tuple(found)


@lru_cache(maxsize=4_096)
def _corrections(seed: int, size: int, day: date) -> tuple[Filing, ...]:
    """What is filed on a day in the place of something filed a few days before."""
    if not is_open(day):
        return ()
    chance, taken = Random(f"{seed}/corrections/{day}"), len(_originals(seed, size, day))
    found = []
    for number in range(taken + 1, taken + 1 + round(taken * CORRECTIONS_OF_A_FILING + 0.5)):
        earlier = _originals(seed, size, day - timedelta(days=chance.randrange(1, LOOKS_BACK + 1)))
        if earlier:
            filing = chance.choice(earlier)
            at_exchange = filing.rcept_no[8:10] == "80"
            found.append(
                replace(
                    filing,
                    title=f"[기재정정]{filing.title}",
                    rcept_no=number_of(day, number, at_exchange=at_exchange),
                    at=_some_second(day, chance),
                    corrects=filing.rcept_no,
                )
            )
    return tuple(found)


@lru_cache(maxsize=4_096)
def _reports(market: Market, day: date) -> tuple[Filing, ...]:
    """What is filed on a day as a periodic report, or as the correction of one."""

    def filing(report: Report, number: int) -> Filing:
        company = _company(market.seed, report.company, is_listed=True)
        return Filing(
            company,
            report.title,
            "A",
            number_of(day, number, at_exchange=False),
            report.filed,
            company.name,
            "연" if has_subsidiaries(report.company, report.year) else "",
            corrected_at=market.corrected_at(report),
        )

    return tuple(filing(report, FIRST_NUMBER + place) for place, report in enumerate(market.of_day(day)))


def _some_second(day: date, chance: Random) -> datetime:
    return datetime.combine(day, OPENS, SEOUL) + timedelta(seconds=chance.randrange(0, 11 * 3_600))


def number_of(day: date, number: int, *, at_exchange: bool) -> str:
    """Return a receipt number: the day, where it was taken in, and a running number of that place."""
    return f"{day:%Y%m%d}{'80' if at_exchange else '00'}{number:04}"
