"""Generated economic series: what is published when, with first releases, revisions and days without a value.

Promises: a series is decided by seed, id and years of history alone: its frequency, since when vintages are kept, and
every value that is ever published with the instant at which it is. Never: a clock is read here, and no value is a
binary float.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from random import Random
from zoneinfo import ZoneInfo

ST_LOUIS = ZoneInfo("America/Chicago")

# Frequencies of the ids that the sandbox lists; any other id is monthly.
LISTED: dict[str, str] = {
    "D": "T5YIE T10YIE T5YIFR DCOILWTICO DCOILBRENTEU DFF DFEDTARU DFEDTARL SOFR IORB DGS1MO DGS3MO DGS1 DGS2 DGS5"
    " DGS10 DGS30 DFII10 T10Y2Y T10Y3M DPRIME BAA10Y AAA10Y DBAA DAAA BAMLH0A0HYM2 BAMLC0A0CM VIXCLS RRPONTSYD DTWEXBGS"
    " DTWEXAFEGS DEXKOUS DEXJPUS DEXUSEU DEXCHUS DEXUSUK DEXCAUS",
    "W": "GASREGW ICSA CCSA MORTGAGE30US NFCI STLFSI4 WM2NS WALCL WRESBAL WTREGEN TOTBKCR",
    "M": "PCEC96 DSPIC96 PSAVERT INDPRO TCU DGORDER RSAFS BUSINV TOTALSA USREC CFNAI UMCSENT CPIAUCSL CPILFESL CPIAUCNS"
    " PCEPI PCEPILFE PPIACO PPIFIS IR MICH UNRATE U6RATE PAYEMS CIVPART EMRATIO JTSJOL JTSQUR CES0500000003 AWHAETP"
    " FEDFUNDS TOTALSL BUSLOANS HOUST PERMIT HSN1F EXHOSLUSM495S MSACSR CSUSHPINSA M1SL M2SL BOGMBASE MTSDS133FMS",
    "Q": "GDP GDPC1 A191RL1Q225SBEA GDPDEF GPDI ECIWAG OPHNFB DRSFRMACBS DRTSCILM TDSP USSTHPI MSPUS RHORUSQ156N"
    " GFDEBTN",
    "A": "FPCPITOTLZGUSA",
}
FREQUENCY_OF = {series: frequency for frequency, ids in LISTED.items() for series in ids.split()}
WORDS = {
    "D": "Daily",
    "W": "Weekly, Ending Friday",
    "M": "Monthly",
    "Q": "Quarterly",
    "A": "Annual",
}
# First observation and first vintage: what was published before is in the first vintage, all at once.
BEGINS = {
    "D": (date(2016, 6, 1), date(2017, 6, 1)),
    "W": (date(2012, 1, 6), date(2014, 3, 7)),
    "M": (date(2000, 1, 1), date(2009, 5, 20)),
    "Q": (date(1995, 1, 1), date(2004, 8, 27)),
    "A": (date(1990, 1, 1), date(2012, 6, 1)),
}
# Days from the end of a period to its first release, and how often later releases may correct it.
LAG = {"D": (1, 1), "W": (5, 1), "M": (12, 2), "Q": (29, 2), "A": (120, 1)}
# Until the next release that can correct a value.
BETWEEN = {"D": 1, "W": 7, "M": 30, "Q": 30, "A": 365}
# Periods that the yearly benchmark rewrites.
BENCHMARK = {"M": 24, "Q": 12}
# Histories are counted back from here.
NOW_YEAR = 2026
HOLIDAYS = {(1, 1), (6, 19), (7, 4), (11, 11), (12, 25)}
MISSING = "."


@dataclass(frozen=True)
class Profile:
    """What a series is like. `is_late`: loaded in the evening, after whoever asks once a day has asked."""

    series: str
    frequency: str
    first: date
    kept_since: date
    digits: int
    base: int
    trend: int
    noise: int
    hour: time
    is_late: bool


Change = tuple[datetime, date, str]
"""An instant, an observation, and the text that is published for it from then on."""


@lru_cache(maxsize=4096)
def profile(seed: int, series: str, years: int) -> Profile:
    """Return what a series is like, by seed and id; `years` shortens the history of all alike."""
    chance = Random(f"{seed}/{series}/profile")
    frequency = FREQUENCY_OF.get(series, "M")
    first, kept_since = BEGINS[frequency]
    shift = max(NOW_YEAR - years - first.year, 0)
    if shift:
        # Weeks keep their weekday.
        first += timedelta(days=7 * round(365.25 * shift / 7)) if frequency == "W" else timedelta(0)
        first = first if frequency == "W" else first.replace(year=first.year + shift)
        kept_since = min(kept_since.replace(year=max(kept_since.year, first.year + 1)), date(NOW_YEAR - 1, 6, 2))
    digits = chance.choice((1, 2, 3))
    is_late = chance.random() < 0.15
    hour = time(17, chance.randrange(30, 59), chance.randrange(60)) if is_late else time(7, chance.randrange(31, 59))
    scale = 10**digits
    return Profile(
        series=series,
        frequency=frequency,
        first=first,
        kept_since=kept_since,
        digits=digits,
        # Some series live around zero, so that values are negative too.
        base=chance.choice((0, 4, 100, 20_000)) * scale,
        trend=chance.randrange(0, 3) * scale // 10,
        noise=max(scale, 5),
        hour=hour,
        is_late=is_late,
    )


def periods(frequency: str, first: date, until: date) -> Iterator[tuple[date, date]]:
    """Return the periods that have begun by a day: the day that names each one, and its last day."""
    day = first
    while day <= until:
        after = _after(frequency, day)
        if frequency == "D":
            if day.weekday() < 5:
                yield day, day
        else:
            # A week is named by the day on which it ends.
            yield day, day if frequency == "W" else after - timedelta(days=1)
        day = after


def _after(frequency: str, day: date) -> date:
    if frequency in "DW":
        return day + timedelta(days=1 if frequency == "D" else 7)
    months = day.month - 1 + {"M": 1, "Q": 3, "A": 12}[frequency]
    return date(day.year + months // 12, months % 12 + 1, 1)


def _work_day(day: date) -> date:
    while day.weekday() > 4 or (day.month, day.day) in HOLIDAYS:
        day += timedelta(days=1)
    return day


@lru_cache(maxsize=4096)
def changes(seed: int, series: str, years: int, until: date) -> tuple[Change, ...]:
    """Return all that is published of a series up to the end of a day, in order of publication."""
    like = profile(seed, series, years)
    lag, corrections = LAG[like.frequency]
    between = BETWEEN[like.frequency]
    found: list[Change] = []
    released: list[tuple[date, date]] = []
    for number, (day, last) in enumerate(periods(like.frequency, like.first, until)):
        chance = Random(f"{seed}/{series}/{day}")
        release = _work_day(last + timedelta(days=lag))
        released.append((day, release))
        is_missing = like.frequency == "D" and ((day.month, day.day) in HOLIDAYS or chance.random() < 0.01)
        value = like.base + like.trend * number + chance.randint(-like.noise, like.noise)
        found.append((_at(like, release), day, MISSING if is_missing else _text(value, like)))
        for again in range(1, corrections + 1):
            share = 0.02 if like.frequency == "D" else 0.6
            if not is_missing and chance.random() < share:
                value += chance.choice((-2, -1, 1, 2))
                correction = _work_day(release + timedelta(days=between * again))
                found.append((_at(like, correction), day, _text(value, like)))
        if is_missing and day.weekday() == 2 and chance.random() < 0.5:
            # Missing at first, and given later after all.
            found.append((_at(like, _work_day(release + timedelta(days=9))), day, _text(value, like)))
    found += _benchmarks(seed, like, released, until)
    found.sort()
    first = datetime.combine(like.kept_since, like.hour, ST_LOUIS)
    return tuple(_collapsed(found, first, until))


def _benchmarks(seed: int, like: Profile, released: list[tuple[date, date]], until: date) -> Iterator[Change]:
    """Once a year the last periods are rewritten together."""
    count = BENCHMARK.get(like.frequency)
    if count is None:
        return
    for year in range(like.kept_since.year + 1, until.year + 1):
        when = _work_day(date(year, 9, 24) if like.frequency == "Q" else date(year, 2, 7))
        chance = Random(f"{seed}/{like.series}/{year}/benchmark")
        held = [(number, day) for number, (day, release) in enumerate(released) if release < when][-count:]
        for number, day in held:
            value = like.base + like.trend * number + chance.randint(-like.noise, like.noise)
            yield _at(like, when), day, _text(value, like)


def _collapsed(found: list[Change], first: datetime, until: date) -> Iterator[Change]:
    """What was published before vintages were kept is the first vintage; what changes nothing is no change."""
    before: dict[date, str] = {}
    for at, day, text in found:
        if at < first:
            before[day] = text
    for day, text in sorted(before.items()):
        yield first, day, text
    now = dict(before)
    for at, day, text in found:
        if at >= first and at.date() <= until and now.get(day) != text:
            now[day] = text
            yield at, day, text


def _at(like: Profile, day: date) -> datetime:
    return datetime.combine(day, like.hour, ST_LOUIS)


def _text(value: int, like: Profile) -> str:
    return format(Decimal(value).scaleb(-like.digits), "f")
