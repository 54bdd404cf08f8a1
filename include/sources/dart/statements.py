"""DART's statements of one company and period (fnlttSinglAcntAll), read to the won.

Promises: an amount is the exact number that the text is, with the text beside it; nothing, `-` and a missing field are
no amount and never zero; a row says on which basis it is, which the answer itself does not. Never: a basis stands in
for the other, an account is filled in, or a sign is turned.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from include.contract import ParseError, Rejected
from include.sources.dart.answers import NO_DATA, NORMAL, rows_of

Basis = Literal["CFS", "OFS"]

AMOUNTS = (
    "thstrm_amount", "thstrm_add_amount", "frmtrm_amount", "frmtrm_q_amount", "frmtrm_add_amount", "bfefrmtrm_amount",
)  # fmt: skip
TEXTS = (
    "rcept_no", "reprt_code", "bsns_year", "corp_code", "sj_div", "sj_nm", "account_id", "account_nm", "account_detail",
    "thstrm_nm", "frmtrm_nm", "frmtrm_q_nm", "bfefrmtrm_nm", "ord", "currency",
)  # fmt: skip
_NEEDED = ("rcept_no", "reprt_code", "bsns_year", "corp_code", "sj_div", "account_nm")
# The amount of the period itself, which each statement has.
CURRENT = "thstrm_amount"
NO_STANDARD_ACCOUNT = "-표준계정코드 미사용-"
# Commas stand between groups of three digits or nowhere: anywhere else nobody knows what they are. Nor what a blank
# between two digits is: two amounts may stand in one field.
_NUMBER = re.compile(r"(?P<sign>[-△▲]?)\s*(?P<digits>(?:[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)(?:\.[0-9]+)?)")


@dataclass(frozen=True)
class Account:
    """One row of a statement: its basis, its place in the answer, texts and amounts as given, and the exact numbers.

    `odd` names the amounts that are neither a number nor nothing; they have their text and no number.
    """

    basis: Basis
    position: int
    texts: Mapping[str, str]
    given: Mapping[str, str]
    amounts: Mapping[str, Decimal | None]
    odd: tuple[str, ...]
    extra: Mapping[str, Any]


def amount(text: str | None) -> tuple[Decimal | None, bool]:
    """Return the number that a text is, None where it is none, and whether it should have been one."""
    bare = (text or "").strip()
    if bare in ("", "-"):
        return None, False
    is_bracketed = bare.startswith("(") and bare.endswith(")")
    found = _NUMBER.fullmatch(bare[1:-1].strip() if is_bracketed else bare)
    if found is None:
        return None, True
    number = Decimal(found["digits"].replace(",", ""))
    return (-number if is_bracketed or found["sign"] else number), False


def read(body: bytes, basis: Basis, rejected: list[Rejected]) -> list[Account]:
    """Read the rows of a company's statements on one basis; none where there are none, as without subsidiaries.

    Rows that cannot be read are added to `rejected`; the others keep their places.

    Raises:
        ParseError: the answer is not of the form that we know.
    """
    try:
        document = rows_of(body)
    except ValueError as error:
        raise ParseError(f"the answer is no JSON object: {error}") from None
    if document.get("status") == NO_DATA:
        return []
    items = document.get("list")
    if document.get("status") != NORMAL or not isinstance(items, list) or not items:
        raise ParseError("the answer has no rows, though it does not say that there are none")
    found = []
    for position, item in enumerate(items, start=1):
        missing = [name for name in _NEEDED if not isinstance(item, dict) or not isinstance(item.get(name), str)]
        if missing:
            rejected.append(Rejected(f"row {position}", f"lacks {', '.join(missing)}", str(item)[:2000]))
        else:
            found.append(_account(item, basis, position))
    if not found:
        raise ParseError(f"no row can be read; the first {rejected[0].reason}")
    if not any(CURRENT in item for item in items if isinstance(item, dict)):
        raise ParseError(f"no row has {CURRENT}, so the amounts stand somewhere else or are not there")
    return found


def _account(item: Mapping[str, Any], basis: Basis, position: int) -> Account:
    given = {name: str(item[name]) for name in AMOUNTS if item.get(name) is not None}
    numbers = {name: amount(given.get(name)) for name in AMOUNTS}
    return Account(
        basis,
        position,
        {name: str(item[name]).strip() for name in TEXTS if item.get(name) is not None},
        given,
        {name: number for name, (number, _) in numbers.items()},
        tuple(name for name, (_, is_odd) in numbers.items() if is_odd),
        {name: value for name, value in item.items() if name not in TEXTS and name not in AMOUNTS},
    )
