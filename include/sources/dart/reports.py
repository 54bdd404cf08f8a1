"""DART's key items of periodic reports, under the official names of their endpoints, and how their rows are read.

Promises: a row is kept as given, field by field, in the order of the answer, which carries meaning; what an endpoint
gives beside the fields that it is known for is kept and named; one endpoint that fails is one endpoint's trouble.
Never: a total is left out, a number is read, or a quarter is guessed from the day of settlement: the request knows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from include.contract import ParseError, Rejected
from include.sources.dart.answers import NO_DATA, NORMAL, rows_of

# What every row has beside the endpoint's own fields.
SHARED = ("rcept_no", "corp_cls", "corp_code", "corp_name", "stlm_dt")

# Endpoint → title in the guide, and its fields; those of older and newer forms are both here.
ENDPOINTS: Mapping[str, tuple[str, str]] = {
    "accnutAdtorNmNdAdtOpinion": (
        "회계감사인의 명칭 및 감사의견",
        "bsns_year adtor adt_opinion adt_reprt_spcmnt_matter emphs_matter core_adt_matter",
    ),
    "accnutAdtorNonAdtServcCnclsSttus": (
        "회계감사인과의 비감사용역 계약체결 현황",
        "bsns_year cntrct_cncls_de servc_cn servc_exc_pd servc_mendng rm",
    ),
    "adtServcCnclsSttus": (
        "감사용역체결현황",
        "bsns_year adtor cn mendng tot_reqre_time adt_cntrct_dtls_mendng adt_cntrct_dtls_time "
        "real_exc_dtls_mendng real_exc_dtls_time",
    ),
    "alotMatter": (
        "배당에 관한 사항",
        "se stock_knd thstrm frmtrm lwfr",
    ),
    "cndlCaplScritsNrdmpBlce": (
        "조건부 자본증권 미상환 잔액",
        "remndr_exprtn1 remndr_exprtn2 yy1_below yy1_excess_yy2_below yy2_excess_yy3_below "
        "yy3_excess_yy4_below yy4_excess_yy5_below yy5_excess_yy10_below yy10_excess_yy20_below "
        "yy20_excess_yy30_below yy30_excess sm",
    ),
    "cprndNrdmpBlce": (
        "회사채 미상환 잔액",
        "remndr_exprtn1 remndr_exprtn2 yy1_below yy1_excess_yy2_below yy2_excess_yy3_below "
        "yy3_excess_yy4_below yy4_excess_yy5_below yy5_excess_yy10_below yy10_excess sm",
    ),
    "detScritsIsuAcmslt": (
        "채무증권 발행실적",
        "isu_cmpny scrits_knd_nm isu_mth_nm isu_de facvalu_totamt intrt evl_grad_instt mtd repy_at mngt_cmpny",
    ),
    "drctrAdtAllMendngSttusGmtsckConfmAmount": (
        "이사·감사 전체의 보수현황(주주총회 승인금액)",
        "se nmpr gmtsck_confm_amount rm fscl_year",
    ),
    "drctrAdtAllMendngSttusMendngPymntamtTyCl": (
        "이사·감사 전체의 보수현황(보수지급금액 - 유형별)",
        "se nmpr pymnt_totamt psn1_avrg_pymntamt rm fscl_year stk_bsd_pd_mendng_totamt stk_opt_exrcsbl_qty "
        "stk_opt_unexrcsbl_qty stk_opt_rmn_blce othr_stk_bsd_cmpn_unpyd_qty othr_stk_bsd_cmpn_mkt_vl",
    ),
    "empSttus": (
        "직원 현황",
        "fo_bbm sexdstn reform_bfe_emp_co_rgllbr reform_bfe_emp_co_cnttk reform_bfe_emp_co_etc rgllbr_co "
        "rgllbr_abacpt_labrr_co cnttk_co cnttk_abacpt_labrr_co sm avrg_cnwk_sdytrn fyer_salary_totamt "
        "jan_salary_am rm",
    ),
    "entrprsBilScritsNrdmpBlce": (
        "기업어음증권 미상환 잔액",
        "remndr_exprtn1 remndr_exprtn2 de10_below de10_excess_de30_below de30_excess_de90_below "
        "de90_excess_de180_below de180_excess_yy1_below yy1_excess_yy2_below yy2_excess_yy3_below yy3_excess "
        "sm",
    ),
    "exctvSttus": (
        "임원 현황",
        "nm sexdstn birth_ym ofcps rgist_exctv_at fte_at chrg_job main_career mxmm_shrholdr_relate hffc_pd "
        "tenure_end_on",
    ),
    "hmvAuditAllSttus": (
        "이사·감사 전체의 보수현황(보수지급금액 - 이사·감사 전체)",
        "nmpr mendng_totamt jan_avrg_mendng_am rm fscl_year stk_bsd_pd_mendng_totamt stk_opt_exrcsbl_qty "
        "stk_opt_unexrcsbl_qty stk_opt_rmn_blce othr_stk_bsd_cmpn_unpyd_qty othr_stk_bsd_cmpn_mkt_vl",
    ),
    "hmvAuditIndvdlBySttus": (
        "이사·감사의 개인별 보수현황(5억원 이상)",
        "nm ofcps mendng_totamt mendng_totamt_ct_incls_mendng",
    ),
    "hmvAuditIndvdlBySttusV2": (
        "이사·감사의 개인별 보수현황(5억원 이상) (Ver 2.0)",
        "nm fscl_year ofcps mendng_totamt stk_bsd_pd_mendng_totamt_knd stk_bsd_pd_mendng_totamt_qty "
        "stk_bsd_pd_mendng_totamt_amt stk_opt_exrcsbl_qty stk_opt_unexrcsbl_qty stk_opt_exrc_pr "
        "stk_opt_rmn_blce othr_stk_bsd_cmpn_unpyd_qty othr_stk_bsd_cmpn_mkt_vl rm",
    ),
    "hyslrChgSttus": (
        "최대주주 변동현황",
        "change_on mxmm_shrholdr_nm posesn_stock_co qota_rt change_cause rm",
    ),
    "hyslrSttus": (
        "최대주주 현황",
        "nm relate stock_knd bsis_posesn_stock_co bsis_posesn_stock_qota_rt trmend_posesn_stock_co "
        "trmend_posesn_stock_qota_rt rm",
    ),
    "indvdlByPay": (
        "개인별 보수지급 금액(5억이상 상위5인)",
        "nm ofcps mendng_totamt mendng_totamt_ct_incls_mendng",
    ),
    "indvdlByPayV2": (
        "개인별 보수지급 금액(5억이상 상위5인) (Ver 2.0)",
        "nm fscl_year ofcps mendng_totamt stk_bsd_pd_mendng_totamt_knd stk_bsd_pd_mendng_totamt_qty "
        "stk_bsd_pd_mendng_totamt_amt stk_opt_exrcsbl_qty stk_opt_unexrcsbl_qty stk_opt_exrc_pr "
        "stk_opt_rmn_blce othr_stk_bsd_cmpn_unpyd_qty othr_stk_bsd_cmpn_mkt_vl rm",
    ),
    "irdsSttus": (
        "증자(감자) 현황",
        "isu_dcrs_de isu_dcrs_stle isu_dcrs_stock_knd isu_dcrs_qy isu_dcrs_mstvdv_fval_amount isu_dcrs_mstvdv_amount",
    ),
    "mrhlSttus": (
        "소액주주 현황",
        "se shrholdr_co shrholdr_tot_co shrholdr_rate hold_stock_co stock_tot_co hold_stock_rate",
    ),
    "newCaplScritsNrdmpBlce": (
        "신종자본증권 미상환 잔액",
        "remndr_exprtn1 remndr_exprtn2 yy1_below yy1_excess_yy5_below yy5_excess_yy10_below "
        "yy10_excess_yy15_below yy15_excess_yy20_below yy20_excess_yy30_below yy30_excess sm",
    ),
    "otrCprInvstmntSttus": (
        "타법인 출자현황",
        "inv_prm frst_acqs_de invstmnt_purps frst_acqs_amount bsis_blce_qy bsis_blce_qota_rt "
        "bsis_blce_acntbk_amount incrs_dcrs_acqs_dsps_qy incrs_dcrs_acqs_dsps_amount incrs_dcrs_evl_lstmn "
        "trmend_blce_qy trmend_blce_qota_rt trmend_blce_acntbk_amount recent_bsns_year_fnnr_sttus_tot_assets "
        "recent_bsns_year_fnnr_sttus_thstrm_ntpf",
    ),
    "outcmpnyDrctrNdChangeSttus": (
        "사외이사 및 그 변동현황",
        "drctr_co otcmp_drctr_co apnt rlsofc mdstrm_resig",
    ),
    "prvsrpCptalUseDtls": (
        "사모자금의 사용내역",
        "se_nm tm pay_de pay_amount cptal_use_plan real_cptal_use_sttus mtrpt_cptal_use_plan_useprps "
        "mtrpt_cptal_use_plan_prcure_amount real_cptal_use_dtls_cn real_cptal_use_dtls_amount "
        "dffrnc_occrrnc_resn",
    ),
    "pssrpCptalUseDtls": (
        "공모자금의 사용내역",
        "se_nm tm pay_de pay_amount on_dclrt_cptal_use_plan real_cptal_use_sttus rs_cptal_use_plan_useprps "
        "rs_cptal_use_plan_prcure_amount real_cptal_use_dtls_cn real_cptal_use_dtls_amount "
        "dffrnc_occrrnc_resn",
    ),
    "srtpdPsndbtNrdmpBlce": (
        "단기사채 미상환 잔액",
        "remndr_exprtn1 remndr_exprtn2 de10_below de10_excess_de30_below de30_excess_de90_below "
        "de90_excess_de180_below de180_excess_yy1_below sm isu_lmt remndr_lmt",
    ),
    "stockTotqySttus": (
        "주식의 총수 현황",
        "se isu_stock_totqy now_to_isu_stock_totqy now_to_dcrs_stock_totqy redc profit_incnr rdmstk_repy etc "
        "istc_totqy tesstk_co distb_stock_co",
    ),
    "tesstkAcqsDspsSttus": (
        "자기주식 취득 및 처분 현황",
        "acqs_mth1 acqs_mth2 acqs_mth3 stock_knd bsis_qy change_qy_acqs change_qy_dsps change_qy_incnr trmend_qy rm",
    ),
    "unrstExctvMendngSttus": (
        "미등기임원 보수현황",
        "se nmpr fyer_salary_totamt jan_salary_am rm",
    ),
}
# Endpoints whose rows stand in groups, each with a title.
GROUPED = frozenset({"hmvAuditIndvdlBySttusV2", "indvdlByPayV2"})


@dataclass(frozen=True)
class Row:
    """One row of an item: its place in the answer, the group that it is in, its values as given, and unknown fields."""

    position: int
    group: str | None
    values: Mapping[str, str]
    extra: Mapping[str, Any]


def fields_of(endpoint: str) -> tuple[str, ...]:
    """Return the fields of an endpoint's rows.

    Raises:
        KeyError: there is no such endpoint; the name is misspelt, which never means that there is no data.
    """
    return (*SHARED, *ENDPOINTS[endpoint][1].split())


def read(endpoint: str, body: bytes, rejected: list[Rejected]) -> list[Row]:
    """Read the rows of an endpoint; none where it has none for the report.

    Rows that cannot be read are added to `rejected`; the others keep their places.

    Raises:
        KeyError: see `fields_of`.
        ParseError: the answer is not of the form that we know.
    """
    fields = frozenset(fields_of(endpoint))
    try:
        document = rows_of(body)
    except ValueError as error:
        raise ParseError(f"the answer is no JSON object: {error}") from None
    if document.get("status") == NO_DATA:
        return []
    groups = document.get("group") if endpoint in GROUPED else [{"list": document.get("list")}]
    if document.get("status") != NORMAL or not isinstance(groups, list):
        raise ParseError(f"the answer of {endpoint} has no rows, though it does not say that there are none")
    found: list[Row] = []
    position = 0
    for group in groups:
        items = group.get("list") if isinstance(group, dict) else None
        if not isinstance(items, list):
            raise ParseError(f"the answer of {endpoint} has no list of rows")
        for item in items:
            position += 1
            if not isinstance(item, dict) or not isinstance(item.get("rcept_no"), str):
                rejected.append(Rejected(f"row {position}", "names no report", str(item)[:2000]))
                continue
            values = {name: str(value).strip() for name, value in item.items() if name in fields and value is not None}
            extra = {name: value for name, value in item.items() if name not in fields}
            found.append(Row(position, group.get("title"), values, extra))
    if not found:
        why = f"the first {rejected[0].reason}" if position else "it does not say that there are none"
        raise ParseError(f"no row of {endpoint} can be read: {why}")
    if not any(row.values.keys() - SHARED for row in found):
        given = ", ".join(sorted(found[0].extra)[:5]) or "nothing more"
        raise ParseError(f"no row has a field of {endpoint}: they are of something else (the first has {given})")
    return found
