"""The SEC's quarterly statement data sets, generated: what companies filed in a quarter, as tables in an archive.

Promises: members, headers, separators and what is odd in them follow what was seen in real sets: quotation marks that
quote nothing, empty texts, codes with zeros in front, labels past ASCII, a few lines that share their key, presentation
without a statement; sets before the SEC built them anew have no dimensions. The same seed, quarter and version give the
same bytes. Never: code that reads such sets is used here.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from random import Random

_WRITTEN = (2026, 1, 1, 0, 0, 0)
SUB = (
    "adsh cik name sic countryba stprba cityba zipba bas1 bas2 baph countryma stprma cityma zipma mas1 mas2 countryinc "
    "stprinc ein former changed afs wksi fye form period fy fp filed accepted prevrpt detail instance nciks aciks"
)
PRE = "adsh report line stmt inpth rfile tag version plabel negating"
TAG = "tag version custom abstract datatype iord crdr tlabel doc"
NUM = "adsh tag version ddate qtrs uom segments coreg value footnote"
OLD_NUM = "adsh tag version coreg ddate qtrs uom value footnote"
_TAGS = ("Assets", "Liabilities", "Revenues", "NetIncomeLoss", "CashAndCashEquivalentsAtCarryingValue", "Goodwill")
_TOWNS = ("SPRINGFIELD", "ST. JOHN'S", 'THE "GAP"', "MÜNSTER")
_SIGNS = ('"', "&", "&", "&", "'")
# Of filings: those without an industry, those whose period nobody says, lines that share a key.
NO_SIC, NO_PERIOD, SHARED = 0.03, 0.05, 0.002


@dataclass(frozen=True)
class Sets:
    """The sets of a market of so many companies; `version` counts how often a quarter's was built anew."""

    seed: int
    companies: int
    version: int = 0
    has_segments: bool = True

    def archive(self, year: int, number: int) -> bytes:
        """The archive of a quarter."""
        return _packed(self, year, number)

    def members(self, year: int, number: int) -> dict[str, str]:
        """Its members; the first quarter that there is has headers alone."""
        filings = [] if (year, number) == (2009, 1) else list(self._filings(year, number))
        dice = Random(f"{self.seed}/{year}/{number}/{self.version}/lines")
        pre: list[str] = []
        num: list[str] = []
        tags: dict[tuple[str, str], str] = {}
        for filing in filings:
            self._statements(dice, filing, pre, num, tags)
        return {
            "sub.txt": _text(SUB, [filing.line for filing in filings]),
            "pre.txt": _text(PRE, pre),
            "tag.txt": _text(TAG, [tags[key] for key in sorted(tags)]),
            "num.txt": _text(NUM if self.has_segments else OLD_NUM, num),
            "readme.htm": "<html><body><p>What the tables are.</p></body></html>",
        }

    def _filings(self, year: int, number: int) -> Iterator[_Filing]:
        first = date(year, 3 * number - 2, 1)
        for company in range(self.companies):
            dice = Random(f"{self.seed}/{year}/{number}/{company}")
            if dice.random() < 0.1:
                continue
            cik, filed = 1_750 + company * 97, first + timedelta(days=dice.randrange(5, 88))
            adsh = f"{cik:010d}-{year % 100:02d}-{number * 100_000 + company:06d}"
            is_year = number == 1
            fp = "FY" if is_year else f"Q{number - 1}"
            end = first - timedelta(days=1)
            known = dice.random() >= NO_PERIOD
            town = dice.choice(_TOWNS)
            accepted = filed - timedelta(days=company % 13 == 5)
            values = {
                "adsh": adsh,
                "cik": str(cik),
                "name": f"NORTH {_SIGNS[company % 5]} RIVER {company} INC",
                "sic": "" if dice.random() < NO_SIC else f"{dice.choice((100, 3711, 6022, 7372))}",
                "countryba": "US",
                "stprba": "MI",
                "cityba": town,
                "zipba": f"{dice.randrange(1_000, 99_999):05d}",
                "bas1": "ONE ROAD",
                "baph": "0133223000",
                "countryma": "US",
                "cityma": town,
                "countryinc": "US",
                "stprinc": "DE",
                "ein": f"{dice.randrange(10**6, 10**9):09d}",
                "former": "OLD NAME" if company % 11 == 3 else "",
                "changed": "20150131" if company % 11 == 3 else "",
                "afs": dice.choice(("1-LAF", "2-ACC", "4-NON", "")),
                "wksi": str(company % 2),
                "fye": dice.choice(("1231", "0131", "0930")),
                "form": ("10-K" if is_year else "10-Q") if known else "8-K",
                "period": f"{end:%Y%m%d}",
                "fy": str(end.year) if known else "",
                "fp": fp if known else "",
                "filed": f"{filed:%Y%m%d}",
                "accepted": f"{accepted:%Y-%m-%d} {17 + company % 3}:{company % 60:02d}:00.0",
                "prevrpt": str(int(self.version > 0 and company % 29 == 1)),
                "detail": "1",
                "instance": f"nr-{end:%Y%m%d}_htm.xml",
                "nciks": "2" if company % 17 == 4 else "1",
                "aciks": str(cik + 1) if company % 17 == 4 else "",
            }
            yield _Filing(adsh, end, "\t".join(values.get(name, "") for name in SUB.split()))

    def _statements(
        self, dice: Random, filing: _Filing, pre: list[str], num: list[str], tags: dict[tuple[str, str], str]
    ) -> None:
        taxonomy = f"us-gaap/{filing.end.year}"
        for place in range(dice.randrange(6, 14)):
            is_custom = place == 5
            tag = f"Own{filing.adsh[-4:]}" if is_custom else _TAGS[place % len(_TAGS)] + ("" if place < 6 else "Other")
            version = filing.adsh if is_custom else taxonomy
            stmt = "" if dice.random() < 0.004 else ("BS", "BS", "IS", "IS", "CF")[place % 5]
            label = ('Assets, "net"', "Résultat – net", "Total")[place % 3]
            is_negated = str(int(place % 7 == 6))
            pre.append("\t".join((filing.adsh, "2", str(place + 1), stmt, "0", "H", tag, version, label, is_negated)))
            kind = ("0", "monetary", "D", "") if place == 3 else ("0", "monetary", "I", "C")
            shown = "" if is_custom else tag
            tags[tag, version] = "\t".join((tag, version, str(int(is_custom)), *kind, shown, 'What is meant by "it".'))
            value = "" if dice.random() < 0.045 else f"{dice.randrange(-(10**11), 10**12)}.0000"
            ends = f"{filing.end:%Y%m%d}"
            tail = ("Region=EU;", "", value, "") if self.has_segments and place % 3 else ("", "", value, "")
            line = [filing.adsh, tag, version, ends, str((0, 1, 4)[place % 3]), "USD", *tail]
            if not self.has_segments:
                line = [filing.adsh, tag, version, "", ends, str((0, 1, 4)[place % 3]), "USD", value, ""]
            num.append("\t".join(line))
            if dice.random() < SHARED:
                num.append("\t".join(line))


@dataclass(frozen=True)
class _Filing:
    adsh: str
    end: date
    line: str


def _text(header: str, lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in ("\t".join(header.split()), *lines))


@lru_cache(maxsize=12)
def _packed(sets: Sets, year: int, number: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in sets.members(year, number).items():
            archive.writestr(zipfile.ZipInfo(name, _WRITTEN), text.encode(), zipfile.ZIP_DEFLATED)
    return file.getvalue()
