"""Whose filings are collected: tiers of the market, and own lists, as the configuration names them.

Promises: a list without anybody in it, and a name that nobody knows, are errors that say where to mend them; membership
is dated, so that a day of the past has its own. Never: a company is named by its ticker here, as tickers move on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from include.sources.sec.names import cik_of

CONFIGURATION = "config/sec.yaml"
MEMBERS = "config/sec_sp500.yaml"

ALL, SP500 = "all", "sp500"
EXCHANGES = ("nasdaq", "nyse")
# Forms that were renamed: whoever asks for the one wants what followed it, and the other way round.
RENAMED = {"SC 13D": "SCHEDULE 13D", "SC 13G": "SCHEDULE 13G"}


class UniverseUnfit(Exception):
    """The universe cannot be used as it is configured; the text says where and why."""


@dataclass(frozen=True)
class Member:
    """A company on a list, from a day on and until another, both inclusive; None: since ever, still."""

    cik: int
    since: date | None = None
    until: date | None = None

    def is_on(self, day: date) -> bool:
        """Say whether it is on the list on a day."""
        return (self.since is None or self.since <= day) and (self.until is None or day <= self.until)


@dataclass(frozen=True)
class Policy:
    """What is collected whole (`documents`) and who is followed one by one (`companies`): tiers or lists by name.

    `forms` limits what is collected whole to some form types, under their old and new names, and their amendments; all
    of them where it is empty.
    `docs` says whose annual and quarterly reports of these are cut into items.
    """

    documents: str = ALL
    docs: str = ALL
    forms: frozenset[str] = frozenset()
    companies: tuple[str, ...] = ()
    lists: Mapping[str, tuple[Member, ...]] = field(default_factory=dict)

    def members(self, name: str, day: date) -> tuple[int, ...]:
        """Return who is on a list on a day."""
        return tuple(member.cik for member in self.lists.get(name, ()) if member.is_on(day))

    def wants_documents(self, cik: int, day: date) -> bool:
        """Say whether a company's filings of a day are collected whole; exchanges are told by the database."""
        return self.documents not in self.lists or cik in self.members(self.documents, day)

    def wants_form(self, form: str) -> bool:
        """Say whether filings of a form are collected whole."""
        return not self.forms or form in self.forms or form.removesuffix("/A") in self.forms

    def followed(self, listed: Sequence[str], day: date) -> tuple[int, ...]:
        """Return who is followed on a day: the lists, then `listed`, who is on the exchanges that are followed."""
        own = [cik for name in self.companies for cik in self.members(name, day)]
        return tuple(dict.fromkeys([*own, *(cik for each in listed if (cik := cik_of(each)))]))

    def named(self, key: str, day: date | None) -> tuple[int, ...]:
        """Return whom an operator's key names: a company, or everybody on a list."""
        if key in self.lists:
            return self.members(key, day) if day else tuple(member.cik for member in self.lists[key])
        cik = cik_of(key)
        return (cik,) if cik else ()

    def knows(self, key: str) -> bool:
        """Say whether a key names a company or a list."""
        return key in self.lists or cik_of(key) is not None


def policy(configured: Any, members: Any) -> Policy:
    """Return the policy that the configuration describes.

    Args:
        configured: `documents`, `companies` and `lists`, as read from `config/sec.yaml`.
        members: the dated membership of the S&P 500, as read from `config/sec_sp500.yaml`.

    Raises:
        UniverseUnfit: something is missing, empty or unknown.
    """
    given = configured if isinstance(configured, Mapping) else {}
    if unknown := sorted(set(given) - {"documents", "docs", "forms", "companies", "lists"}):
        raise UniverseUnfit(
            f"{CONFIGURATION} has {unknown[0]!r}, which nobody knows; it has documents, docs, forms, companies and "
            "lists."
        )
    own = given.get("lists") or {}
    if not isinstance(own, Mapping) or {ALL, SP500, *EXCHANGES} & set(own):
        raise UniverseUnfit(f"{CONFIGURATION}: lists must be names, none of them a tier's, each with companies.")
    lists = {str(name): _members(CONFIGURATION, str(name), companies) for name, companies in own.items()}
    documents, docs = str(given.get("documents", ALL)), str(given.get("docs", ALL))
    companies = given.get("companies") or ()
    if isinstance(companies, str) or not isinstance(companies, Sequence):
        raise UniverseUnfit(f"{CONFIGURATION}: companies must be a list of tiers or lists, e.g. [watched].")
    used = tuple(str(name) for name in companies)
    if SP500 in (documents, docs, *used):
        lists[SP500] = _members(MEMBERS, SP500, members)
    known = (*EXCHANGES, *lists)
    if ALL in used:
        raise UniverseUnfit(
            f"{CONFIGURATION}: companies names {ALL}: whoever files is found by the feed anyway; name whom to follow."
        )
    for name in (documents, docs, *used):
        if name not in known and name != ALL:
            raise UniverseUnfit(
                f"{CONFIGURATION} names the tier {name!r}, which has nobody in it; there are "
                f"{', '.join((ALL, *known))}. Add it, or take it out."
            )
    if len([name for name in used if name in EXCHANGES]) > 1:
        raise UniverseUnfit(f"{CONFIGURATION}: companies may name one exchange; name the other as a list.")
    return Policy(documents, docs, _forms(given.get("forms", ALL)), used, lists)


def _forms(given: Any) -> frozenset[str]:
    if given == ALL:
        return frozenset()
    # YAML reads a bare 4 as a number.
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise UniverseUnfit(f"{CONFIGURATION}: forms must be all, or a list such as [10-K, 8-K, '4'].")
    forms = {str(form) for form in given}
    for old, new in (*RENAMED.items(), *((new, old) for old, new in RENAMED.items())):
        forms |= {new + end for end in ("", "/A") if old + end in forms}
    return frozenset(forms)


def _members(file: str, name: str, companies: Any) -> tuple[Member, ...]:
    if not isinstance(companies, Sequence) or isinstance(companies, str) or not companies:
        raise UniverseUnfit(
            f"{file}: the tier {name} has nobody in it. Nothing is collected for a tier without companies; list them "
            "by CIK, e.g. - cik: 320193."
        )
    return tuple(_member(file, name, each) for each in companies)


def _member(file: str, name: str, given: Any) -> Member:
    told = given if isinstance(given, Mapping) else {"cik": given}
    cik = cik_of(str(told.get("cik", "")))
    since, until = told.get("from"), told.get("to")
    wrong = [day for day in (since, until) if day is not None and type(day) is not date]
    if cik is None or wrong or (since and until and since > until):
        raise UniverseUnfit(
            f"{file}: {given!r} in {name} is no company; write - cik: 320193 with from: and to: as 2024-09-23 where it "
            "was not always on the list."
        )
    return Member(cik, since, until)
