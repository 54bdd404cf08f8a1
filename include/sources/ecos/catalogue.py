"""Which series are collected, and how one is named: statistic, cycle and item codes with points between them.

Promises: a name says all that a request needs, so that two series that differ in their cycle alone are two. Never: a
code is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CONFIGURATION = "config/ecos_series.yaml"
CYCLES = {"A": "yearly", "S": "half-yearly", "Q": "quarterly", "M": "monthly", "SM": "half-monthly", "D": "daily"}
# Item codes are what ECOS says they are: digits, letters, a star in some statistics.
_NAME = re.compile(r"([0-9A-Z]{3,8})\.(A|S|Q|M|SM|D)((?:\.[0-9A-Za-z*_-]{1,20}){1,4})")
_GROUP = re.compile(r"[a-z][a-z0-9_]{0,29}")


class CatalogueUnfit(Exception):
    """The list of series cannot be used; the text says where and why."""


@dataclass(frozen=True)
class Series:
    """One series: its statistic, its cycle, and an item code for each level that the statistic has."""

    statistic: str
    cycle: str
    items: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name in the configuration, e.g. 722Y001.D.0101000."""
        return ".".join((self.statistic, self.cycle, *self.items))


def series(name: str) -> Series | None:
    """Return the series of a name, None where it is none."""
    found = _NAME.fullmatch(name)
    return Series(found[1], found[2], tuple(found[3].split(".")[1:])) if found else None


@dataclass(frozen=True)
class Catalogue:
    """The series to collect, in groups by name."""

    groups: Mapping[str, tuple[Series, ...]]

    @property
    def all(self) -> tuple[Series, ...]:
        """Every series once, in the order of the groups."""
        return tuple(dict.fromkeys(each for group in self.groups.values() for each in group))

    def of(self, keys: Sequence[str]) -> tuple[Series, ...]:
        """Return the series that an operator's keys name, all where there are none; a group names all of its own."""
        if not keys:
            return self.all
        named = (self.groups[key] if key in self.groups else filter(None, (series(key),)) for key in keys)
        return tuple(dict.fromkeys(each for some in named for each in some))

    def knows(self, key: str) -> bool:
        """Say whether a key names a series or a group."""
        return key in self.groups or any(each.name == key for each in self.all)


def catalogue(groups: Any) -> Catalogue:
    """Return the catalogue that a configuration describes.

    Raises:
        CatalogueUnfit: it is no mapping of groups to lists of series, or a name in it cannot be one.
    """
    if not isinstance(groups, Mapping) or not groups:
        raise CatalogueUnfit(
            f"{CONFIGURATION} must name groups, each with a list of series, e.g. rates: [722Y001.D.0101000]."
        )
    found: dict[str, tuple[Series, ...]] = {}
    for group, names in groups.items():
        if not isinstance(group, str) or not _GROUP.fullmatch(group):
            raise CatalogueUnfit(
                f"{CONFIGURATION}: {group!r} cannot be a group's name; write small letters and digits."
            )
        if not isinstance(names, Sequence) or isinstance(names, str) or not names:
            raise CatalogueUnfit(f"{CONFIGURATION}: {group} must be a list of series, e.g. [722Y001.D.0101000].")
        read = {name: series(name) if isinstance(name, str) else None for name in names}
        wrong = [name for name, each in read.items() if each is None]
        if wrong:
            raise CatalogueUnfit(
                f"{CONFIGURATION}: {wrong[0]!r} in {group} cannot be a series; write statistic, cycle "
                f"({', '.join(CYCLES)}) and an item code for each level, e.g. 722Y001.D.0101000."
            )
        found[group] = tuple(each for each in read.values() if each is not None)
    return Catalogue(found)
