"""What DART's stand-in answers of a company and period: statements on both bases, and the items of the report.

Promises: pure; the rows of a report are the same each time, and those of its correction differ. Never: rows of a report
that DART does not have yet, or a basis in the place of the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from include.sandbox.dart_filings import Company
from include.sandbox.dart_items import ALWAYS, FIELDS, GROUPED
from include.sandbox.dart_periodic import Report, has_statements, has_subsidiaries

# Statement, its name, whether a quarter has three months and the time since the year began, and its accounts.
_STATEMENTS = (
    ("BS", "재무상태표", False, "ifrs-full_Assets 자산총계|ifrs-full_Equity 자본총계|-표준계정코드 미사용- 기타채권"),
    ("CIS", "포괄손익계산서", True, "ifrs-full_Revenue 매출액|ifrs-full_BasicEarningsLossPerShare 기본주당이익(손실)"),
    ("CF", "현금흐름표", False, "ifrs-full_CashFlowsFromUsedInOperatingActivities 영업활동현금흐름"),
    ("SCE", "자본변동표", False, "ifrs-full_Equity 기말자본|ifrs-full_Equity 기말자본"),
)


def statements(
    seed: int, size: int, report: Report, number: str, company: Company, basis: str
) -> list[dict[str, str]] | None:
    """Return the rows of a report's statements; None where it has none on a basis."""
    if not has_statements(size, report.company) or (
        basis == "CFS" and not has_subsidiaries(report.company, report.year)
    ):
        return None
    chance = Random(f"{seed}/statements/{number}/{basis}")
    shared = {
        "rcept_no": number,
        "reprt_code": report.code,
        "bsns_year": str(report.year),
        "corp_code": company.corp_code,
    }
    term = report.year - 1980
    rows = list[dict[str, str]]()
    for div, name, is_income, accounts in _STATEMENTS:
        for account in accounts.split("|"):
            identity, _, label = account.rpartition(" ")
            row = {
                **shared,
                "sj_div": div,
                "sj_nm": name,
                "account_id": identity,
                "account_nm": label,
                "account_detail": f"자본 [구성요소]|{chance.choice(('자본금', '이익잉여금'))}" if div == "SCE" else "-",
                "thstrm_nm": f"제 {term} 기",
                "thstrm_amount": _amount(chance, label),
            }
            if report.code == "11011":
                row |= {"frmtrm_nm": f"제 {term - 1} 기", "frmtrm_amount": _amount(chance, label)}
                row |= {"bfefrmtrm_nm": f"제 {term - 2} 기", "bfefrmtrm_amount": _amount(chance, label)}
            elif is_income:
                row |= {"thstrm_add_amount": _amount(chance, label)}
                row |= {"frmtrm_q_nm": f"제 {term - 1} 기", "frmtrm_q_amount": _amount(chance, label)}
                row |= {"frmtrm_add_amount": _amount(chance, label)}
            else:
                row |= {"frmtrm_nm": f"제 {term - 1} 기말", "frmtrm_amount": _amount(chance, label)}
            rows.append({**row, "ord": str(len(rows) + 1), "currency": "KRW"})
    return rows


def _amount(chance: Random, label: str) -> str:
    kind = chance.random()
    if kind < 0.06:
        return chance.choice(("", "-"))
    if "주당" in label:
        return f"{chance.randrange(-900, 9_000)}.{chance.randrange(1, 100):02}"
    number = chance.randrange(10**6, 10 ** chance.randrange(9, 17))
    return str(-number if kind < 0.2 else number)


def item(seed: int, report: Report, number: str, company: Company, endpoint: str) -> Mapping[str, Any] | None:
    """Return what an endpoint has of a report, as the rest of its document; None where the report has no such item."""
    chance = Random(f"{seed}/item/{company.corp_code}/{report.year}/{report.code}/{endpoint}")
    share = 0.9 if report.code == "11011" else 0.5
    is_new, is_old = endpoint in GROUPED, endpoint in GROUPED.values()
    if endpoint not in ALWAYS and (
        chance.random() > share or (is_new and report.year < 2025) or (is_old and report.year >= 2025)
    ):
        return None
    year, month = report.title.rpartition("(")[2].rstrip(")").split(".")
    chance = Random(f"{seed}/item/{number}/{endpoint}")
    rows = [
        {
            "rcept_no": number,
            "corp_cls": company.market,
            "corp_code": company.corp_code,
            "corp_name": company.name,
            "stlm_dt": f"{year}-{month}-{30 if month in ('06', '09') else 31}",
            **{name: _text(chance, name) for name in FIELDS[endpoint].split()},
        }
        for _ in range(chance.randrange(1, 4))
    ]
    return {"group": [{"title": "보수지급금액", "list": rows}]} if is_new else {"list": rows}


def _text(chance: Random, name: str) -> str:
    if name in ("se", "nm", "relate", "stock_knd", "ofcps", "adtor", "bsns_year", "rm", "sexdstn"):
        return chance.choice(("보통주", "우선주", "합계", "가나다", "-", "제54기(당기)"))
    kind = chance.random()
    if kind < 0.2:
        return "-"
    return f"{chance.randrange(1, 10**9):,}" if kind < 0.9 else f"{chance.randrange(1, 100)}.{chance.randrange(10)}"
