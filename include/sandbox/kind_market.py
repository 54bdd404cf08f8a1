"""A generated Korean list of companies: who is listed on a day, under which name, on which market.

Promises: decided by seed, size and the plan of events; codes are text with leading zeros and, for some, letters; among
the first names are those that careless readers get wrong. Never: a clock is read here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import lru_cache
from random import Random

KOSPI, KOSDAQ, KONEX = "유가", "코스닥", "코넥스"
MARKETS = (KOSPI, KOSDAQ, KONEX)

# Syllables that CP949 alone has, entities, a number in front, letters in the code, and the two that only sound alike.
KNOWN = (
    ("004840", "똠방각하", KOSPI, "기타 금융업", "", "03월"),
    ("0015G0", "가나전자", KOSDAQ, "전자부품 제조업", "센서, 모듈", "12월"),
    ("000150", "가람메리츠지주", KOSPI, "기타 금융업", "투자사업", "12월"),
    ("293941", "누리알파리츠", KOSPI, "부동산 임대 및 공급업", "비거주 부동산 임대 서비스업", "06월"),
    ("307281", "누리제8호스팩", KOSDAQ, "금융 지원 서비스업", "기업인수합병", "12월"),
    ("001255", "한빛 R&D", KOSDAQ, "자연과학 및 공학 연구개발업", 'LED "고휘도" <방수형>, 렌즈', "12월"),
    ("0037T0", "1E5소프트", KOSDAQ, "소프트웨어 개발 및 공급업", "응용 소프트웨어", "12월"),
    ("900141", "바다홀딩스", KOSDAQ, "특수 목적용 기계 제조업", "", "09월"),
)
_FIRST = tuple("가나다라마바사아자차카타파하한대동서남북신우유이정조최강윤임")
_SECOND = tuple("람빛결울솔늘봄새온찬힘길들물별숲터해")
_LAST = (
    "전자",
    "화학",
    "제약",
    "바이오",
    "건설",
    "식품",
    "철강",
    "통신",
    "반도체",
    "소재",
    "물산",
    "산업",
    "테크",
    "홀딩스",
)
_SECTORS = (
    "반도체 제조업", "기초 의약물질 제조업", "소프트웨어 개발 및 공급업", "전자부품 제조업", "일차 비철금속 제조업",
    "기타 식품 제조업", "건물 건설업", "특수 목적용 기계 제조업", "의료용 기기 제조업", "상품 종합 도매업",
)  # fmt: skip
_REGIONS = ("서울특별시", "경기도", "부산광역시", "대구광역시", "충청북도", "경상남도", "대전광역시")
_MONTHS = ("12월",) * 17 + ("03월", "06월", "09월")


@dataclass(frozen=True)
class Company:
    """One company as the list shows it."""

    code: str
    name: str
    market: str
    sector: str
    products: str
    listed_on: date
    closing_month: str
    representatives: str = "홍길동"
    website: str = ""
    region: str = "서울특별시"


# An instant and what holds from then on: a company that comes, nothing (it goes), or fields that change.
Change = tuple[datetime, str, Company | Mapping[str, str] | None]


@dataclass(frozen=True)
class Events:
    """What happens: `changes` in the order of their instants, and `hidden` days on which a code is not shown."""

    changes: tuple[Change, ...] = ()
    hidden: frozenset[tuple[date, str]] = field(default_factory=frozenset)


@dataclass(frozen=True)
class Companies:
    """The market of one seed and size with its events: pure questions about any instant."""

    seed: int
    size: int
    events: Events = Events()

    def listed(self, at: datetime, day: date) -> list[Company]:
        """The companies that the list shows at an instant, in its order."""
        found = {company.code: company for company in generated(self.seed, self.size)}
        for since, code, change in self.events.changes:
            if since > at:
                break
            if change is None:
                found.pop(code, None)
            elif isinstance(change, Company):
                found[code] = change
            elif code in found:
                found[code] = replace(found[code], **dict(change))  # type: ignore[arg-type]
        return sorted(
            (each for each in found.values() if (day, each.code) not in self.events.hidden),
            key=lambda each: (each.market, each.name, each.code),
        )


@lru_cache(maxsize=8)
def generated(seed: int, size: int) -> tuple[Company, ...]:
    """The companies that are listed before anything happens: so many of KOSPI and KOSDAQ, and some of KONEX."""
    chance = Random(f"{seed}/kind")
    known = [
        Company(code, name, market, sector, products, date(1999, 3, 2), month)
        for code, name, market, sector, products, month in KNOWN[:size]
    ]
    codes = {company.code for company in known}
    made: list[Company] = []
    while len(made) < size - len(known) + max(size // 20, 2):
        market = KONEX if len(made) >= size - len(known) else KOSPI if chance.random() < 0.35 else KOSDAQ
        code = f"{chance.randrange(100, 49_999):05d}0"
        if code not in codes:
            codes.add(code)
            made.append(make(f"{seed}/{code}", code, market))
    return (*known, *made)


def make(seed: str, code: str, market: str, listed_on: date | None = None) -> Company:
    """One company, decided by its code."""
    chance = Random(f"{seed}/{code}")
    name = chance.choice(_FIRST) + chance.choice(_SECOND) + chance.choice(_LAST)
    return Company(
        code=code,
        name=name,
        market=market,
        sector=chance.choice(_SECTORS),
        products=chance.choice(("", "센서, 모듈", "원료의약품", "응용 소프트웨어 개발, 유지보수")),
        listed_on=listed_on or date(1990, 1, 3) + timedelta(days=chance.randrange(12_000)),
        closing_month=chance.choice(_MONTHS),
        representatives=chance.choice(("홍길동", "김가나, 이다라", "John Doe")),
        website=chance.choice(("", "www.example.kr", "http://www.example.com")),
        region=chance.choice(_REGIONS),
    )
