"""KRX's answers in the form of its OpenAPI: rows of texts, columns in the order in which they are delivered.

Promises: every value is a text without thousands commas, what is missing is "-" or blank, and each service has its own
meaning of `ISU_CD`: the short code in daily trade, the ISIN in the master. Never: a row that the market does not have.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date

from include.sandbox.krx_market import SECTIONS, Market, Trade, noise

Row = dict[str, str]
BLOCK = "OutBlock_1"


def body(rows: list[Row]) -> bytes:
    """The envelope around some rows."""
    return json.dumps({BLOCK: rows}, ensure_ascii=False, separators=(",", ":")).encode()


def percent(change: int, base: int) -> str:
    """A change in percent of the base, with two decimals."""
    hundredths = (abs(change) * 20_000 + base) // (2 * base) if base else 0
    sign = "-" if change < 0 and hundredths else ""
    return f"{sign}{hundredths // 100}.{hundredths % 100:02d}"


def _section(market: str, trade: Trade) -> str:
    return SECTIONS[int.from_bytes(trade.issue.code.encode()) % len(SECTIONS)] if market == "KOSDAQ" else ""


def _label(market: str, trade: Trade) -> str:
    return "KOSDAQ GLOBAL" if trade.issue.code == "247540" and market == "KOSDAQ" else market


def trades(market: str) -> Callable[[Market, date], list[Row]]:
    """The daily trade of a market."""

    def rows(stocks: Market, day: date) -> list[Row]:
        return [
            {
                "BAS_DD": f"{day:%Y%m%d}",
                "ISU_CD": trade.issue.code,
                "ISU_NM": trade.name,
                "MKT_NM": _label(market, trade),
                "SECT_TP_NM": _section(market, trade),
                "TDD_CLSPRC": str(trade.close),
                "CMPPREVDD_PRC": str(trade.close - trade.base),
                "FLUC_RT": percent(trade.close - trade.base, trade.base),
                "TDD_OPNPRC": str(trade.open),
                "TDD_HGPRC": str(trade.high),
                "TDD_LWPRC": str(trade.low),
                "ACC_TRDVOL": str(trade.volume),
                "ACC_TRDVAL": str(trade.volume * trade.close),
                "MKTCAP": str(trade.shares * trade.close),
                "LIST_SHRS": str(trade.shares),
            }
            for trade in stocks.trades(market, day)
        ]

    return rows


def masters(market: str) -> Callable[[Market, date], list[Row]]:
    """The issues of a market."""

    def rows(stocks: Market, day: date) -> list[Row]:
        return [
            {
                "ISU_CD": trade.issue.isin,
                "ISU_SRT_CD": trade.issue.code,
                "ISU_NM": f"{trade.name.strip()}보통주",
                "ISU_ABBRV": trade.name,
                "ISU_ENG_NM": f"Company {trade.issue.code}",
                "LIST_DD": f"{trade.issue.first:%Y%m%d}",
                "MKT_TP_NM": _label(market, trade),
                "SECUGRP_NM": "주권",
                "SECT_TP_NM": _section(market, trade),
                "KIND_STKCERT_TP_NM": "우선주" if trade.issue.code.endswith("K") else "보통주",
                "PARVAL": "무액면" if trade.issue.code == "0037T0" else "500",
                "LIST_SHRS": str(trade.shares),
            }
            for trade in stocks.trades(market, day)
        ]

    return rows


_NAMES: Mapping[str, tuple[str, ...]] = {
    "KOSPI": ("코스피", "코스피 (외국주포함)", "코스피 200", "코스피 대형주", "음식료품"),
    "KOSDAQ": ("코스닥", "코스닥 150", "제약"),
    "KRX": ("KRX 300", "KRX 100", "KRX 은행"),
    "DERIVATIVES": ("코스피 200 선물지수", "변동성지수"),
    "BOND": ("KRX 채권지수", "KTB 지수"),
}


def _level(stocks: Market, name: str, day: date) -> int:
    """An index in hundredths."""
    return (
        80_000 + noise(stocks.seed, name, date.min, "level") % 400_000 + noise(stocks.seed, name, day, "index") % 4_000
    )


def _hundredths(value: int) -> str:
    return f"{'-' if value < 0 else ''}{abs(value) // 100}.{abs(value) % 100:02d}"


def indices(family: str) -> Callable[[Market, date], list[Row]]:
    """The indices of a family; the second of the KOSPI's lacks what only the first has."""

    def rows(stocks: Market, day: date) -> list[Row]:
        found = []
        for place, name in enumerate(_NAMES[family]):
            close = _level(stocks, name, day)
            before = _level(stocks, name, stocks.days.session_offset(day, -1))
            row = {
                "BAS_DD": f"{day:%Y%m%d}",
                "IDX_CLSS": family,
                "IDX_NM": name,
                "CLSPRC_IDX": _hundredths(close),
                "CMPPREVDD_IDX": _hundredths(close - before),
                "FLUC_RT": percent(close - before, before),
                "OPNPRC_IDX": _hundredths(before),
                "HGPRC_IDX": _hundredths(max(close, before) + 150),
                "LWPRC_IDX": _hundredths(min(close, before) - 150),
            }
            if family != "DERIVATIVES":
                row |= {"ACC_TRDVOL": "346573461", "ACC_TRDVAL": "28104555485673", "MKTCAP": "5683776067592413"}
            if family == "KOSPI" and place == 1:
                row |= dict.fromkeys(("OPNPRC_IDX", "HGPRC_IDX", "LWPRC_IDX", "ACC_TRDVOL", "ACC_TRDVAL"), "-")
                row["MKTCAP"] = ""
            found.append(row)
        return found

    return rows


def bonds(stocks: Market, day: date) -> list[Row]:
    """The indices of bonds."""
    found = []
    for name in _NAMES["BOND"]:
        close = _level(stocks, name, day)
        change = _hundredths(close - _level(stocks, name, stocks.days.session_offset(day, -1)))
        row = {"BAS_DD": f"{day:%Y%m%d}", "BND_IDX_GRP_NM": name}
        for index in ("TOT_EARNG_IDX", "NETPRC_IDX", "ZERO_REINVST_IDX", "CALL_REINVST_IDX", "MKT_PRC_IDX"):
            row |= {index: _hundredths(close), f"{index}_CMPPREVDD": change}
        found.append({**row, "AVG_DURATION": "5.87", "AVG_CONVEXITY_PRC": "61.24", "BND_IDX_AVG_YD": "3.151"})
    return found


SERVICES: Mapping[str, tuple[date, Callable[[Market, date], list[Row]]]] = {
    "sto/stk_bydd_trd": (date(2010, 1, 4), trades("KOSPI")),
    "sto/ksq_bydd_trd": (date(2010, 1, 4), trades("KOSDAQ")),
    "sto/knx_bydd_trd": (date(2013, 7, 1), trades("KONEX")),
    "sto/stk_isu_base_info": (date(2010, 1, 4), masters("KOSPI")),
    "sto/ksq_isu_base_info": (date(2010, 1, 4), masters("KOSDAQ")),
    "sto/knx_isu_base_info": (date(2013, 7, 1), masters("KONEX")),
    "idx/krx_dd_trd": (date(2010, 1, 4), indices("KRX")),
    "idx/kospi_dd_trd": (date(2010, 1, 4), indices("KOSPI")),
    "idx/kosdaq_dd_trd": (date(2010, 1, 4), indices("KOSDAQ")),
    "idx/drvprod_dd_trd": (date(2010, 1, 4), indices("DERIVATIVES")),
    "idx/bon_dd_trd": (date(2010, 1, 4), bonds),
}
