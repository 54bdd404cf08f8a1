"""The SEC's formats: the current feed, index files, lists of companies, and what it says to who is not welcome.

Promises: the form is the upstream's to the order of its lines and fields. Never: what is shown is decided here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from random import Random
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from include.sandbox.sec_market import NEW_YORK, Filing, Market, Party

DASHES = "-" * 80


def _stamp(at: datetime) -> str:
    return at.astimezone(NEW_YORK).isoformat(timespec="seconds")


def _size(size: int) -> str:
    return f"{size // 1024 + 1} KB" if size < 1 << 20 else f"{size >> 20} MB"


def _entry(filing: Filing, party: Party) -> str:
    title = escape(f"{filing.form} - {party.name} ({party.cik:010d}) ({party.role})")
    folder = filing.accession.replace("-", "")
    address = f"https://www.sec.gov/Archives/edgar/data/{party.cik}/{folder}/{filing.accession}-index.htm"
    items = "".join(f"\n<br>{item}" for item in filing.items)
    summary = (
        f"\n <b>Filed:</b> {filing.filed} <b>AccNo:</b> {filing.accession} <b>Size:</b> {_size(filing.size)}{items}\n"
    )
    return (
        f"<entry>\n<title>{title}</title>\n"
        f'<link rel="alternate" type="text/html" href={quoteattr(address)}/>\n'
        f'<summary type="html">{escape(summary)}</summary>\n'
        f"<updated>{_stamp(filing.accepted)}</updated>\n"
        f'<category scheme="https://www.sec.gov/" label="form type" term={quoteattr(filing.form)}/>\n'
        f"<id>urn:tag:sec.gov,2008:accession-number={filing.accession}</id>\n</entry>\n"
    )


def feed(at: datetime, entries: Iterable[tuple[Filing, Party]]) -> bytes:
    """A page of the current feed."""
    local = at.astimezone(NEW_YORK)
    text = (
        '<?xml version="1.0" encoding="ISO-8859-1" ?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
        f"<title>Latest Filings - {local:%a, %d %b %Y %H:%M:%S %Z}</title>\n"
        '<link rel="alternate" href="/cgi-bin/browse-edgar?action=getcurrent"/>\n'
        '<link rel="self" href="/cgi-bin/browse-edgar?action=getcurrent"/>\n'
        "<id>https://www.sec.gov/cgi-bin/browse-edgar?action=getcurrent</id>\n"
        "<author><name>Webmaster</name><email>webmaster@sec.gov</email></author>\n"
        f"<updated>{_stamp(at)}</updated>\n"
    )
    return (text + "".join(_entry(*each) for each in entries) + "</feed>\n").encode("latin-1", "xmlcharrefreplace")


def _lines(filings: Iterable[Filing], dated: str) -> list[str]:
    return [
        f"{party.cik}|{party.name}|{form}|{filing.filed:{dated}}|edgar/data/{party.cik}/{filing.accession}.txt\n"
        for filing in filings
        for party in filing.parties
        for form in (filing.form, *filing.also)
    ]


def daily_index(day: date, filings: Iterable[Filing]) -> bytes:
    """The master index of a day; its lines are sorted by the text of the CIK."""
    head = (
        "Description:           Daily Index of EDGAR Dissemination Feed\n"
        f"Last Data Received:    {day:%b} {day.day:2d}, {day.year}\n"
        "Comments:              webmaster@sec.gov\n"
        "Anonymous FTP:         ftp://ftp.sec.gov/edgar/\n \n \n \n \n"
        f"CIK|Company Name|Form Type|Date Filed|File Name\n{DASHES}\n"
    )
    return (head + "".join(sorted(_lines(filings, "%Y%m%d")))).encode("latin-1", "replace")


def full_index(last: date, filings: Iterable[Filing]) -> bytes:
    """The master index of a quarter, with data received until a day."""
    head = (
        "Description:           Master Index of EDGAR Dissemination Feed\n"
        f"Last Data Received:    {last:%B} {last.day}, {last.year}\n"
        "Comments:              webmaster@sec.gov\n"
        "Anonymous FTP:         ftp://ftp.sec.gov/edgar/\n\n\n\n\n"
        f"CIK|Company Name|Form Type|Date Filed|Filename\n{DASHES}\n"
    )
    return (head + "".join(sorted(_lines(filings, "%Y-%m-%d")))).encode("latin-1", "replace")


def block_page(at: datetime, *, undeclared: bool = False) -> bytes:
    """The page that is sent to who asks too fast, or does not say who it is."""
    why = (
        "<p>Your request has been identified as part of an undeclared automated tool.</p>"
        if undeclared
        else "<p>To make the site fair for everybody, each client has a limit.</p>"
    )
    reference = f"0.5c2d1702.{int(at.timestamp())}.1a2b3c4d"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><title>SEC.gov | Request Rate Threshold Exceeded</title></head><body>'
        "<h1>Your traffic is above the limit of this site</h1>"
        f"{why}<p>Reference ID: {reference}</p></body></html>\n"
    ).encode()


def unavailable_page() -> bytes:
    """The page of the network in front of the SEC, behind the last page of the feed as in an outage."""
    return (
        b'<!DOCTYPE html>\n<html lang="en"><head><title>SEC.gov | File Unavailable</title></head>'
        b"<body><h1>This page is temporarily unavailable.</h1></body></html>\n"
    )


def tickers(market: Market, moved: dict[str, int], most: int | None) -> bytes:
    """The list of tickers with exchanges: the market's companies, then as many others as the exchanges have."""
    rows: list[list[Any]] = []
    for number in range(market.companies):
        cik, name, ticker = market.company(number)
        rows.append([cik, name, ticker, ("Nasdaq", "NYSE", "OTC", None)[number % 4 if number else 0]])
    missing = {"Nasdaq": 4_300, "NYSE": 3_300, "OTC": 2_600}
    for exchange, count in missing.items():
        have = sum(row[3] == exchange for row in rows)
        for number in range(max(count - have, 0)):
            rows.append([8_000_000 + len(rows), f"Other {exchange} {number} Inc.", f"Z{exchange[0]}{number}", exchange])
    kept = [[moved.get(row[2], row[0]), *row[1:]] for row in rows[:most]]
    return json.dumps({"fields": ["cik", "name", "ticker", "exchange"], "data": kept}).encode()


def submissions(market: Market, number: int, filings: Sequence[Filing]) -> bytes:
    """A company's own list of filings; its older ones are on two pages."""
    cik, name, ticker = market.company(number)
    old = [_old_row(cik, each) for each in range(1, 11)]
    rows = [*(_row(cik, filing) for filing in reversed(filings)), *old]
    files = [
        {"name": f"CIK{cik:010d}-submissions-{page:03d}.json", "filingCount": 10, **_span(cik, page)} for page in (1, 2)
    ]
    place = {"street1": "1 EXAMPLE WAY", "street2": None, "city": "ANYWHERE", "stateOrCountry": "DE",
             "zipCode": "19801", "stateOrCountryDescription": "DE",
             "isForeignLocation": 0, "foreignStateTerritory": None, "country": None, "countryCode": None}  # fmt: skip
    document = {
        "cik": f"{cik:010d}", "entityType": "operating", "sic": "3571", "sicDescription": "Electronic Computers",
        "ownerOrg": "06 Technology", "insiderTransactionForOwnerExists": 0, "insiderTransactionForIssuerExists": 1,
        "name": name, "tickers": [ticker], "exchanges": ["Nasdaq"], "ein": "000000000", "lei": None, "description": "",
        "website": "", "investorWebsite": "", "category": "Non-accelerated filer<br>Smaller reporting company",
        "fiscalYearEnd": "0229", "stateOfIncorporation": "DE", "stateOfIncorporationDescription": "DE",
        "addresses": {"mailing": place, "business": place}, "phone": "555 0100", "flags": "",
        "formerNames": [{"name": f"OLD {name}", "from": "2001-01-02T00:00:00.000Z", "to": "2003-04-05T00:00:00.000Z"}],
        "filings": {"recent": _columns(rows), "files": files},
    }  # fmt: skip
    return json.dumps(document, separators=(",", ":")).encode()


def submissions_page(cik: int, page: int) -> bytes:
    """An older page of a company's list: the lists at its top, and nothing else."""
    return json.dumps(
        _columns([_old_row(cik, 10 * page + each) for each in range(1, 11)]), separators=(",", ":")
    ).encode()


def _span(cik: int, page: int) -> dict[str, str]:
    days = [_old_row(cik, 10 * page + each)["filingDate"] for each in range(1, 11)]
    return {"filingFrom": min(days), "filingTo": max(days)}


def _clock(cik: int, accepted: datetime) -> str:
    """The acceptance as the list gives it: of every other company in New York's clock, with the same Z."""
    clock = accepted.astimezone(NEW_YORK if cik % 2 else UTC)
    return f"{clock:%Y-%m-%dT%H:%M:%S}.000Z"


def _row(cik: int, filing: Filing) -> dict[str, Any]:
    digest = hashlib.sha256(filing.seed.encode()).hexdigest()
    return {
        "accessionNumber": filing.accession,
        "filingDate": filing.filed.isoformat(),
        "reportDate": "" if digest[0] < "5" else filing.accepted.date().isoformat(),
        "acceptanceDateTime": _clock(cik, filing.accepted),
        "act": "34", "form": filing.form, "fileNumber": "001-00001", "filmNumber": digest[:8],
        "items": "2.02,9.01" if filing.items else "", "core_type": filing.form, "size": filing.size, "isXBRL": 0,
        "isInlineXBRL": 0, "primaryDocument": "main.htm", "primaryDocDescription": filing.form,
    }  # fmt: skip


def _old_row(cik: int, number: int) -> dict[str, Any]:
    """A filing of long ago, the same whenever it is asked for."""
    random = Random(f"{cik}/{number}/old")
    filed = date(2019, (7, 4, 1)[number // 10 % 3], random.randrange(1, 28))
    accepted = datetime(filed.year, filed.month, filed.day, 16, random.randrange(60), tzinfo=NEW_YORK)
    return {
        "accessionNumber": f"{cik:010d}-{filed:%y}-{number:06d}",
        "filingDate": filed.isoformat(),
        "reportDate": "",
        "acceptanceDateTime": _clock(cik, accepted),
        "act": "34", "form": random.choice(("10-K", "10-Q", "8-K", "SC 13G")), "fileNumber": "", "filmNumber": "",
        "items": "", "core_type": "", "size": random.randrange(1000, 100_000), "isXBRL": 0, "isInlineXBRL": 0,
        "primaryDocument": "" if number % 7 == 0 else "old.txt", "primaryDocDescription": "",
    }  # fmt: skip


def _columns(rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    names = _old_row(1, 1)
    return {name: [row[name] for row in rows] for name in names}
