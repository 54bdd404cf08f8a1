"""Symbols: which are asked for by default, which can be asked for at all, and how they are put into groups.

Promises: a symbol's group depends on its letters and on the number of groups alone, so that a new listing moves
nobody else; the number of groups changes in steps. Never: no symbol is repaired.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from functools import lru_cache
from itertools import count

# A malformed symbol makes Alpaca refuse the whole request; lists of assets hold some (with digits or blanks).
_WELL_FORMED = re.compile(r"[A-Z]{1,8}(\.[A-Z]{1,4}){0,2}")
_GROUP = re.compile(r"([0-9]{1,5})\.([0-9]{1,5})")
_LONGEST_LIST = 200
# How full groups are in the mean: letters do not spread evenly.
_FULL = 0.8

# Asked for while no list of assets is held: large companies of all sectors, the usual funds, a class share, and
# names that careless readers take for something else.
DEFAULT = (
    "AAPL", "ABBV", "ABT", "ADBE", "AMD", "AMZN", "AVGO", "BA", "BAC", "BRK.B", "C", "CAT", "COST", "CRM", "CSCO",
    "CVX", "DIA", "DIS", "F", "GE", "GLD", "GM", "GOOG", "GOOGL", "GS", "HD", "IBM", "INTC", "IWM", "JNJ", "JPM",
    "KO", "LLY", "MA", "MCD", "META", "MRK", "MSFT", "NFLX", "NKE", "NVDA", "ORCL", "PEP", "PFE", "PG", "QQQ", "SPY",
    "T", "TLT", "TRUE", "TSLA", "UNH", "V", "VZ", "WFC", "WMT", "XOM",
)  # fmt: skip


def is_well_formed(symbol: str) -> bool:
    """Say whether Alpaca takes a symbol for one, known or not."""
    return _WELL_FORMED.fullmatch(symbol) is not None


def group_count(symbols: int, size: int) -> int:
    """How many groups so many symbols make, in steps of 1, 2, 3, 4, 6, 8, 12, 16 and so on."""
    if symbols <= size:
        return 1
    for power in count(1):
        for groups in (2**power, 3 * 2 ** (power - 1)):
            if groups * size * _FULL >= symbols:
                return groups
    raise AssertionError("unreachable")


def group_of(symbol: str, groups: int) -> str:
    """The name of a symbol's group, e.g. `32.7`: the number of groups, and which one."""
    return f"{groups}.{zlib.crc32(symbol.encode()) % groups}"


def is_group(name: str) -> bool:
    """Say whether a name is a group's, and no list of symbols."""
    return _GROUP.fullmatch(name) is not None


def holds_any(name: str, symbols: Sequence[str]) -> bool:
    """Say whether one of some symbols belongs to a group."""
    found = _GROUP.fullmatch(name)
    return found is not None and name in {group_of(symbol, max(int(found[1]), 1)) for symbol in symbols}


def members(name: str, universe: tuple[str, ...]) -> tuple[str, ...]:
    """The symbols of a group, or those of a list such as `AAPL,MSFT`, in name order."""
    found = _GROUP.fullmatch(name)
    if found is None:
        return tuple(name.split(","))
    return _grouped(universe, max(int(found[1]), 1)).get(name, ())


@lru_cache(maxsize=8)
def _grouped(universe: tuple[str, ...], groups: int) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for symbol in sorted(universe):
        found.setdefault(group_of(symbol, groups), []).append(symbol)
    return {name: tuple(symbols) for name, symbols in found.items()}


def groups_of(universe: tuple[str, ...], size: int) -> list[str]:
    """The names of the groups that hold somebody, in the order of their numbers."""
    groups = group_count(len(universe), size)
    present = _grouped(universe, groups)
    return [name for number in range(groups) if (name := f"{groups}.{number}") in present]


def lists(symbols: Sequence[str], groups: int, size: int) -> list[str]:
    """Put named symbols into lists such as `AAPL,MSFT`, each within one group and no longer than a key may be."""
    by_group: dict[str, list[str]] = {}
    for symbol in sorted(set(symbols)):
        by_group.setdefault(group_of(symbol, groups), []).append(symbol)
    found = []
    for group in by_group.values():
        text, number = "", 0
        for symbol in group:
            if text and (len(text) + 1 + len(symbol) > _LONGEST_LIST or number >= size):
                found.append(text)
                text, number = "", 0
            text, number = f"{text},{symbol}" if text else symbol, number + 1
        found.append(text)
    return found
