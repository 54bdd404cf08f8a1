"""KRX's daily trade and its master of issues.

Promises: prices and counts are whole numbers of won and shares; a price of zero is no price, so that a stock that was
halted or not traded has its close and nothing else. `ISU_CD` is the short code in daily trade and the ISIN in the
master, and only its own form is taken for each. Never: a code is made a number, and a market is read off a label.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from include.contract import Parsed, Unit
from include.sources.krx.rows import Form
from include.sources.krx.tables import ISSUES, PRICES

PARSER_VERSION = 1

# Digits and capital letters: since 2024 codes have letters, and leading zeros have always mattered.
_is_code = re.compile(r"[0-9A-Z]{6}").fullmatch
_ISIN = re.compile(r"[A-Z]{2}[0-9A-Z]{9}[0-9]")

_TRADE = Form(
    {
        "ISU_CD": "name",
        "ISU_NM": "name",
        "MKT_NM": "text",
        "SECT_TP_NM": "text",
        "TDD_CLSPRC": "whole",
        "CMPPREVDD_PRC": "whole",
        "FLUC_RT": "exact",
        "TDD_OPNPRC": "whole",
        "TDD_HGPRC": "whole",
        "TDD_LWPRC": "whole",
        "ACC_TRDVOL": "whole",
        "ACC_TRDVAL": "whole",
        "MKTCAP": "whole",
        "LIST_SHRS": "whole",
    }
)

_MASTER = Form(
    {
        "ISU_CD": "name",
        "ISU_SRT_CD": "name",
        "ISU_NM": "name",
        "ISU_ABBRV": "text",
        "ISU_ENG_NM": "text",
        "LIST_DD": "day",
        "MKT_TP_NM": "text",
        "SECUGRP_NM": "text",
        "SECT_TP_NM": "text",
        "KIND_STKCERT_TP_NM": "text",
        "PARVAL": "text",
        "LIST_SHRS": "whole",
    },
    is_dated=False,
)


def parse_prices(unit: Unit) -> Parsed:
    """Read one market's daily trade.

    Raises:
        ParseError: see `Form.read`.
    """
    market, day = unit.key.partition("/")[0], unit.session_date

    def make(
        code: str, name: str, label: str, section: str, close: int | None, change: int | None, percent: Decimal | None,
        opened: int | None, high: int | None, low: int | None, volume: int | None, value: int | None,
        cap: int | None, shares: int | None,
    ) -> tuple[Any, ...]:  # fmt: skip
        if not _is_code(code):
            raise ValueError(f"ISU_CD is {code!r}, which is no short code of six digits and capital letters")
        is_untraded = not (opened or high or low)
        return (
            day, market, code, name.strip(), label.strip(), section.strip() or None, close or None, change, percent,
            opened or None, high or None, low or None, volume, value, cap, shares, is_untraded,
        )  # fmt: skip

    return _TRADE.read(unit, PRICES, make)


def parse_issues(unit: Unit) -> Parsed:
    """Read one market's list of issues as it stood on a day.

    Raises:
        ParseError: see `Form.read`.
    """
    market, day = unit.key.partition("/")[0], unit.session_date

    def make(
        isin: str, code: str, name: str, short: str, english: str, listed: Any, label: str, group: str, section: str,
        kind: str, par: str, shares: int | None,
    ) -> tuple[Any, ...]:  # fmt: skip
        if not _ISIN.fullmatch(isin):
            raise ValueError(f"ISU_CD is {isin!r}, which is no ISIN of twelve characters")
        if not _is_code(code):
            raise ValueError(f"ISU_SRT_CD is {code!r}, which is no short code of six digits and capital letters")
        return (
            day, market, code, isin, name.strip(), short.strip() or None, english.strip() or None, listed,
            label.strip(), group.strip(), section.strip() or None, kind.strip() or None, par.strip(), _par(par), shares,
        )  # fmt: skip

    return _MASTER.read(unit, ISSUES, make)


def _par(text: str) -> Decimal | None:
    """The par value as a number; None for shares without one, which stand there as a word."""
    plain = re.fullmatch(r"([0-9]{1,12}|[0-9]{1,3}(,[0-9]{3}){1,3})(\.[0-9]{1,8})?", text.strip())
    return Decimal(plain[0].replace(",", "")) if plain else None
