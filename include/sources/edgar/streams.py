"""EDGAR's streams: the bulk file of all companies' facts, and the files that are made of its members.

Promises: `edgar.companyfacts` only fetches, and `edgar.facts` asks nobody: it makes one file a company of what is held.
Never: a company is asked for by itself unless an operator names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import BinaryIO

from include.contract import (
    Answer,
    AnswerClass,
    Archive,
    Ask,
    Body,
    Budget,
    Gathering,
    HostGroup,
    Made,
    Making,
    Parsed,
    Request,
    Schedule,
    Stream,
    Unit,
)
from include.sources.edgar import answers, finance_file, scan_file

WWW, DATA = "https://www.sec.gov", "https://data.sec.gov"
BULK = f"{WWW}/Archives/edgar/daily-index/xbrl/companyfacts.zip"
COMPANYFACTS, FACTS, SCAN = "edgar.companyfacts", "edgar.facts", "edgar.scan"
CALENDAR = "US_FEDERAL"
# The interface and the bulk file begin with the first filings that had XBRL.
FIRST_SESSION = date(2009, 6, 15)
KEYS_ARE = "CIKs, e.g. 320193"

# The SEC counts per client, whatever is asked: the same group as that of its other streams, by the same rule.
HOST_GROUP = HostGroup(
    "sec",
    interval=timedelta(milliseconds=135),
    penalty=timedelta(minutes=11),
    busy_wait=timedelta(minutes=11),
    most_absent=20,
)

# The file of a day is built in the night of New York, at an hour that varies: it is looked for every hour until it
# changed, at the latest at noon there. At half past one in Seoul it is still the day before on the Pacific coast, whose
# filings the file is of, in summer and winter.
DAILY = Schedule(
    cron="30 13 * * *",
    timezone="Asia/Seoul",
    market_timezone="America/Los_Angeles",
    retry_first=timedelta(hours=1),
    retry_every=timedelta(hours=1),
    last_try=timedelta(hours=11, minutes=30),
    allowance=timedelta(hours=12),
)
_BUDGET = Budget(slice_seconds=240, reason="one archive is one request, and the files of a part are made in one piece")

_MEMBER = re.compile(r"CIK([0-9]{10})\.json")
_CIK = re.compile(r"0*([1-9][0-9]{0,9})")
_DAY_KEY = re.compile(r"companyfacts/([0-9]{4}-[0-9]{2}-[0-9]{2})")
_UNIT = re.compile(r"([0-9]{10})/facts")


def unit_of(cik: int) -> str:
    """The unit of a company's document."""
    return f"{cik:010d}/facts"


def unit_of_member(name: str) -> str | None:
    """The unit of a member of the bulk file, None where the name is none of a company's document."""
    found = _MEMBER.fullmatch(name)
    return unit_of(int(found[1])) if found and int(found[1]) else None


ARCHIVE = Archive("companyfacts", unit_of_member)


def _bulk(day: date, *, is_due: bool) -> Request:
    key = f"companyfacts/{day}"
    return Request(key=key, unit=key, url=BULK, session_date=day, kind="list", archive=ARCHIVE, awaits_change=is_due)


def _company(cik: int) -> Request:
    return Request(
        key=f"{cik:010d}",
        unit=unit_of(cik),
        url=f"{DATA}/api/xbrl/companyfacts/CIK{cik:010d}.json",
        expected=False,
    )


def plan(ask: Ask) -> Iterator[Request]:
    """Plan the bulk file of the newest session, or the documents of the companies that an operator names.

    The file is a snapshot: of several sessions that lack one, only the newest can be had.
    """
    if ask.keys:
        yield from (_company(cik) for cik in dict.fromkeys(map(cik_of, ask.keys)) if cik is not None)
        return
    newest = max(ask.sessions, default=None)
    if newest is not None:
        yield _bulk(newest, is_due=True)
    for key in ask.pending:
        found = _DAY_KEY.fullmatch(key)
        day = _day(found[1]) if found else None
        if day is not None and day != newest:
            yield _bulk(day, is_due=False)
        elif found is None and (cik := cik_of(key)) is not None:
            yield _company(cik)


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def cik_of(key: str) -> int | None:
    """The company that an operator's key names, None where it names none."""
    found = _CIK.fullmatch(key.strip().upper().removeprefix("CIK"))
    return int(found[1]) if found else None


def parse(unit: Unit) -> Parsed:
    """Give no rows: what is held is for `edgar.facts` to read."""
    return Parsed(())


def is_of(unit: str, keys: Sequence[str]) -> bool:
    """Say whether a unit is of one of some companies."""
    found = _UNIT.fullmatch(unit)
    return found is not None and int(found[1]) in {cik_of(key) for key in keys}


COMPANYFACTS_STREAM = Stream(
    name=COMPANYFACTS,
    title="All companies' facts as the SEC's bulk file has them",
    tables=(),
    schedule=DAILY,
    calendar=CALENDAR,
    host_group=HOST_GROUP,
    budget=_BUDGET,
    parser_version=1,
    plan=plan,
    classify=answers.classify,
    parse=parse,
    first_session=FIRST_SESSION,
    is_of=is_of,
    empty_can_be_right=True,
    snapshot_only="its file shows what holds today. Name companies as keys to have the newest of just these "
    "(mode=poll), or make files again of what is held with mode=replay of edgar.facts.",
    known_key=lambda key: cik_of(key) is not None,
    keys_are=KEYS_ARE,
)


def make(unit: str, body: Body | None, target: BinaryIO) -> Made:
    """Write a company's file.

    Raises:
        ParseError: the document is none of the company's facts.
    """
    if body is None:
        finance_file.write_nothing(target)
        return Made(0)
    facts = finance_file.convert(body.read(), finance_file.cik_of(unit), target)
    return Made(len(facts.rows), facts.rejected, facts.unknown)


def _plan_facts(ask: Ask) -> Iterator[Request]:
    """Name the units of companies; they are read from what is held, and nobody is asked."""
    for cik in dict.fromkeys(cik_of(key) for key in ask.keys):
        if cik is not None:
            unit = unit_of(cik)
            yield Request(key=unit, unit=unit, url=BULK, read_from=(COMPANYFACTS, unit))


def _no_answer(answer: Answer) -> AnswerClass:
    return AnswerClass.ERROR


FACTS_STREAM = Stream(
    name=FACTS,
    title="One file of facts for each company",
    tables=(),
    schedule=DAILY,
    calendar=CALENDAR,
    host_group=HOST_GROUP,
    budget=_BUDGET,
    parser_version=1,
    plan=_plan_facts,
    classify=_no_answer,
    parse=parse,
    first_session=FIRST_SESSION,
    is_of=is_of,
    snapshot_only="it makes files of what edgar.companyfacts holds; use mode=replay to make them again.",
    known_key=lambda key: cik_of(key) is not None,
    keys_are=KEYS_ARE,
    making=Making(COMPANYFACTS, finance_file.path_of, make),
)

SCAN_STREAM = Stream(
    name=SCAN,
    title="The years of all companies, a row for each, in one file",
    tables=(),
    schedule=DAILY,
    calendar=CALENDAR,
    host_group=HOST_GROUP,
    budget=_BUDGET,
    parser_version=1,
    plan=lambda ask: (),
    classify=_no_answer,
    parse=parse,
    first_session=FIRST_SESSION,
    # It is late when what it is made of is, which is judged.
    sla_eligible=False,
    snapshot_only="it is made of the files that edgar.facts has made; use mode=replay to make it again.",
    known_key=lambda key: cik_of(key) is not None,
    keys_are=KEYS_ARE,
    making=Making(
        FACTS, lambda unit: scan_file.PATH, gather=Gathering("scan/finance", scan_file.piece, scan_file.join, batch=200)
    ),
)
