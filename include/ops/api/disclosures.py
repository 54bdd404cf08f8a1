"""Filings of Korean companies with what their analysis says in a line, for readers; no login is needed.

Promises: lists go by key, newest first, and carry status and summary of each analysis, never its key points; a filing
that nobody analyses is UNAVAILABLE. Never: a page is found by counting rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Query, Request
from pydantic import Field
from starlette.responses import Response

from include.engine.db import query
from include.ops.api import access
from include.ops.api.front import keeping
from include.ops.api.problems import NotThere
from include.ops.api.shapes import Cursor, Day, Instant, Page, Shape, Warehoused, page_of, place_of, question
from include.ops.api.warehouse import Warehouse

router = APIRouter(tags=["disclosures"])

# How long an answer may be shown without asking again, in seconds.
RECENT, COMPANY, DOCUMENT = 30, 60, 300
VIEWER = "https://dart.fss.or.kr/dsaf001/main.do?rcpNo="

Number = Annotated[str, Path(pattern=r"^[0-9]{14}$", description="Receipt number: fourteen digits.")]
CorpCode = Annotated[str, Path(pattern=r"^[0-9]{8}$", description="Company as DART numbers it: eight digits.")]
Few = Annotated[int, Query(ge=10, le=50, description="Most items on a page.")]
EARLIEST, LATEST = date(1, 1, 1), date(9999, 12, 31)
NOWHERE = (LATEST, datetime(9999, 12, 31, tzinfo=UTC), "9")


class Disclosure(Shape):
    """One filing."""

    rcept_no: str = Field(description="Receipt number.")
    corp_code: str = Field(description="Company as DART numbers it.")
    corp_name: str = Field(description="Its name; of a listed one its short name.")
    stock_code: str | None = Field(description="Its stock code, where it has one.")
    corp_type: str = Field(description="Market: Y KOSPI, K KOSDAQ, N KONEX, E other.")
    report_name: str = Field(description="Title of the filing.")
    submitter: str = Field(description="Who filed it.")
    rcept_dt: date = Field(description="Day of receipt in Seoul.")
    remark: str = Field(description="DART's marks; 정: corrected later, 철: withdrawn.")
    is_correction: bool = Field(description="Whether it takes the place of an earlier filing.")
    created_at: Instant = Field(description="When it first appeared here.")
    url: str = Field(description="Its page at DART.")
    analysis_status: str = Field(description="State of its analysis; UNAVAILABLE where there is and will be none.")
    summary: str | None = Field(description="One line of its analysis.")


class Company(Shape):
    """A company and its last filings."""

    corp_code: str = Field(description="Company as DART numbers it.")
    corp_name: str = Field(description="Its name.")
    corp_eng_name: str | None = Field(description="Its name in English.")
    stock_code: str | None = Field(description="Its stock code; a delisted one keeps it.")
    modify_date: date | None = Field(description="Day on which DART last changed these data.")
    disclosures: list[Disclosure] = Field(description="Its last filings, ten at most.")


@router.get("/disclosures/recent", name="recent_disclosures", response_model=Page[Disclosure])
@access.public
def recent(request: Request, warehouse: Warehoused, limit: Few = 20, cursor: Cursor = None) -> Response:
    """The last filings, newest first."""
    return keeping(request, _page(warehouse, None, EARLIEST, LATEST, limit, cursor), RECENT)


@router.get("/disclosures", name="list_disclosures", response_model=Page[Disclosure])
@access.public
def listed(
    request: Request,
    warehouse: Warehoused,
    corp_code: Annotated[
        str | None, Query(alias="corpCode", pattern=r"^[0-9]{8}$", description="Only this company's.")
    ] = None,
    begin: Annotated[Day | None, Query(alias="beginDate", description="First day of receipt in Seoul.")] = None,
    end: Annotated[Day | None, Query(alias="endDate", description="Last day of receipt in Seoul.")] = None,
    limit: Few = 20,
    cursor: Cursor = None,
) -> Response:
    """Filings of a company, of some days of receipt, or both, newest first."""
    if corp_code is None and (begin is None or end is None):
        raise HTTPException(422, "Say whose filings (corpCode), or of which days (beginDate and endDate), or both.")
    first, last = begin or EARLIEST, end or LATEST
    if last < first:
        raise HTTPException(422, f"endDate {last} is before beginDate {first}.")
    return keeping(request, _page(warehouse, corp_code, first, last, limit, cursor), COMPANY if corp_code else RECENT)


@router.get("/disclosures/{rcept_no}", name="read_disclosure", response_model=Disclosure)
@access.public
def read(request: Request, warehouse: Warehoused, rcept_no: Number) -> Response:
    """One filing."""
    with warehouse.reading() as (connection, _):
        row = connection.execute(query("ops_disclosures.one"), {"rcept_no": rcept_no}).fetchone()
    if row is None:
        raise NotThere(f"No filing {rcept_no} is known here.")
    return keeping(request, shown(row), DOCUMENT)


@router.get("/companies/{corp_code}", name="read_company", response_model=Company)
@access.public
def company(request: Request, warehouse: Warehoused, corp_code: CorpCode) -> Response:
    """A company with its last filings."""
    values = {"corp_code": corp_code, **_range(EARLIEST, LATEST, NOWHERE, 10)}
    with warehouse.reading() as (connection, _):
        found = connection.execute(query("ops_disclosures.company"), {"corp_code": corp_code}).fetchone()
        rows = connection.execute(query("ops_disclosures.of_company"), values).fetchall()
    if found is None:
        raise NotThere(f"No company {corp_code} is known here.")
    return keeping(request, Company(**found, disclosures=[shown(row) for row in rows]), COMPANY)


def shown(row: Mapping[str, Any]) -> Disclosure:
    """Return a filing as it is shown."""
    return Disclosure(**row, url=f"{VIEWER}{row['rcept_no']}")


def _page(
    warehouse: Warehouse, corp_code: str | None, first: date, last: date, limit: int, cursor: str | None
) -> Page[Disclosure]:
    asked = question(corp=corp_code, first=first, last=last)
    place = place_of(cursor, asked, date.fromisoformat, datetime.fromisoformat, str) if cursor else NOWHERE
    values = _range(first, last, place, limit + 1)
    with warehouse.reading() as (connection, _):
        if corp_code is None:
            rows = connection.execute(query("ops_disclosures.feed"), values).fetchall()
        else:
            rows = connection.execute(
                query("ops_disclosures.of_company"), {**values, "corp_code": corp_code}
            ).fetchall()
    whole = [{**row, "url": f"{VIEWER}{row['rcept_no']}"} for row in rows]
    return page_of(whole, limit, Disclosure, asked, lambda row: (row["rcept_dt"], row["created_at"], row["rcept_no"]))


def _range(first: date, last: date, place: tuple[Any, ...], limit: int) -> dict[str, Any]:
    day, at, number = place
    return {"first": first, "last": last, "day": day, "at": at, "number": number, "limit": limit}
