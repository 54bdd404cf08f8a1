"""DART's statements of companies by period: the stream `dart.finance`.

Promises: both bases are asked for and neither stands in for the other; a row says from which report it is. Never: a row
of another company or period comes in.
"""

from __future__ import annotations

from typing import Any

from include.contract import Batch, Parsed, ParseError, Rejected, Stream, Unit
from include.sources.dart import sets, statements, sync
from include.sources.dart.lists import is_receipt
from include.sources.dart.sets import Category, Part
from include.sources.dart.sync_tables import FINANCE_SETS, STATEMENTS

PARSER_VERSION = 1
# Separate statements are the probe: everybody who reports has them, and not everybody has subsidiaries.
PARTS = {basis: ("fnlttSinglAcntAll", (("fs_div", basis),)) for basis in ("OFS", "CFS")}


def parse(category: Category, unit: Unit) -> Parsed:
    """Read the statements of a company and period on one basis.

    Raises:
        ParseError: the answer is not of the form that we know, or no row of it can be read.
    """
    part = sets.read_key(category, unit.key)
    if part is None:
        raise ParseError(f"{unit.key!r} is not the name of a unit")
    rows, rejected, unknown = list[tuple[Any, ...]](), list[Rejected](), dict[str, None]()
    found = statements.read(unit.answers[0].body.read(), "CFS" if part.part == "CFS" else "OFS", rejected)
    for account in found:
        if (why := _foreign(part, account)) is not None:
            rejected.append(Rejected(f"row {account.position}", why, str(dict(account.texts))[:2000]))
            continue
        unknown |= dict.fromkeys(account.extra)
        rows.append((*_row(part, account), dict(account.extra) or None))
    if found and not rows:
        raise ParseError(f"no row can be read; the first {rejected[0].reason}")
    receipt = max((row[0] for row in rows), default="")
    held = (part.corp, part.period.year, part.period.code, part.period.end, part.part, receipt, len(rows))
    return Parsed((Batch(FINANCE_SETS, (held,)), Batch(STATEMENTS, tuple(rows))), tuple(rejected), tuple(unknown))


def _foreign(part: Part, account: statements.Account) -> str | None:
    """Say in what a row is not of the company and period that were asked for."""
    asked = {"corp_code": part.corp, "bsns_year": f"{part.period.year:04}", "reprt_code": part.period.code}
    for name, value in asked.items():
        if account.texts[name] != value:
            return f"is of {name} {account.texts[name]}, and {value} was asked for"
    if (basis := account.extra.get("fs_div", part.part)) != part.part:
        return f"is on the basis {basis}, and {part.part} was asked for"
    receipt = account.texts["rcept_no"]
    if not is_receipt(receipt):
        return f"has {receipt!r} for a receipt number of 14 digits"
    return None


def _row(part: Part, account: statements.Account) -> tuple[Any, ...]:
    texts, amounts = account.texts, account.amounts
    odd = {name: given for name, given in account.given.items() if given and given != str(amounts[name])}

    def text(name: str) -> str | None:
        return texts.get(name) or None

    return (
        texts["rcept_no"],
        part.part,
        account.position,
        part.corp,
        part.period.year,
        part.period.code,
        part.period.end,
        texts["sj_div"],
        text("sj_nm"),
        text("account_id"),
        texts["account_nm"],
        text("account_detail"),
        text("thstrm_nm"),
        amounts["thstrm_amount"],
        amounts["thstrm_add_amount"],
        text("frmtrm_nm"),
        amounts["frmtrm_amount"],
        text("frmtrm_q_nm"),
        amounts["frmtrm_q_amount"],
        amounts["frmtrm_add_amount"],
        text("bfefrmtrm_nm"),
        amounts["bfefrmtrm_amount"],
        text("ord"),
        text("currency"),
        ",".join(account.odd) or None,
        odd or None,
    )


def stream(choice: sync.Choice) -> Stream:
    """Return the stream of statements."""
    category = Category(PARTS, choice.lookback)
    return sync.stream(
        "finance", "Financial statements, by account", category, (FINANCE_SETS, STATEMENTS), PARSER_VERSION, parse
    )
