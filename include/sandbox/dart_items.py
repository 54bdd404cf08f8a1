"""The key items of periodic reports that DART's stand-in has: endpoints by name, with the fields of their rows."""

from __future__ import annotations

from collections.abc import Mapping

SHARED = ("rcept_no", "corp_cls", "corp_code", "corp_name", "stlm_dt")
# Rows stand in groups, each with a title; they took the place of the endpoints without V2 in 2026.
GROUPED = {"hmvAuditIndvdlBySttusV2": "hmvAuditIndvdlBySttus", "indvdlByPayV2": "indvdlByPay"}
# What every report has, quarterly ones too.
ALWAYS = frozenset({"stockTotqySttus", "hyslrSttus", "empSttus"})
FIELDS: Mapping[str, str] = {
    "accnutAdtorNmNdAdtOpinion": ("bsns_year adtor adt_opinion adt_reprt_spcmnt_matter emphs_matter core_adt_matter"),
    "accnutAdtorNonAdtServcCnclsSttus": ("bsns_year cntrct_cncls_de servc_cn servc_exc_pd servc_mendng rm"),
    "adtServcCnclsSttus": (
        "bsns_year adtor cn mendng tot_reqre_time adt_cntrct_dtls_mendng adt_cntrct_dtls_time "
        "real_exc_dtls_mendng real_exc_dtls_time"
    ),
    "alotMatter": ("se stock_knd thstrm frmtrm lwfr"),
    "cndlCaplScritsNrdmpBlce": (
        "remndr_exprtn1 remndr_exprtn2 yy1_below yy1_excess_yy2_below yy2_excess_yy3_below "
        "yy3_excess_yy4_below yy4_excess_yy5_below yy5_excess_yy10_below yy10_excess_yy20_below "
        "yy20_excess_yy30_below yy30_excess sm"
    ),
    "cprndNrdmpBlce": (
        "remndr_exprtn1 remndr_exprtn2 yy1_below yy1_excess_yy2_below yy2_excess_yy3_below "
        "yy3_excess_yy4_below yy4_excess_yy5_below yy5_excess_yy10_below yy10_excess sm"
    ),
    "detScritsIsuAcmslt": (
        "isu_cmpny scrits_knd_nm isu_mth_nm isu_de facvalu_totamt intrt evl_grad_instt mtd repy_at mngt_cmpny"
    ),
    "drctrAdtAllMendngSttusGmtsckConfmAmount": ("se nmpr gmtsck_confm_amount rm fscl_year"),
    "drctrAdtAllMendngSttusMendngPymntamtTyCl": (
        "se nmpr pymnt_totamt psn1_avrg_pymntamt rm fscl_year stk_bsd_pd_mendng_totamt "
        "stk_opt_exrcsbl_qty stk_opt_unexrcsbl_qty stk_opt_rmn_blce othr_stk_bsd_cmpn_unpyd_qty "
        "othr_stk_bsd_cmpn_mkt_vl"
    ),
    "empSttus": (
        "fo_bbm sexdstn reform_bfe_emp_co_rgllbr reform_bfe_emp_co_cnttk reform_bfe_emp_co_etc "
        "rgllbr_co rgllbr_abacpt_labrr_co cnttk_co cnttk_abacpt_labrr_co sm avrg_cnwk_sdytrn "
        "fyer_salary_totamt jan_salary_am rm"
    ),
    "entrprsBilScritsNrdmpBlce": (
        "remndr_exprtn1 remndr_exprtn2 de10_below de10_excess_de30_below de30_excess_de90_below "
        "de90_excess_de180_below de180_excess_yy1_below yy1_excess_yy2_below yy2_excess_yy3_below "
        "yy3_excess sm"
    ),
    "exctvSttus": (
        "nm sexdstn birth_ym ofcps rgist_exctv_at fte_at chrg_job main_career mxmm_shrholdr_relate "
        "hffc_pd tenure_end_on"
    ),
    "hmvAuditAllSttus": (
        "nmpr mendng_totamt jan_avrg_mendng_am rm fscl_year stk_bsd_pd_mendng_totamt "
        "stk_opt_exrcsbl_qty stk_opt_unexrcsbl_qty stk_opt_rmn_blce othr_stk_bsd_cmpn_unpyd_qty "
        "othr_stk_bsd_cmpn_mkt_vl"
    ),
    "hmvAuditIndvdlBySttus": ("nm ofcps mendng_totamt mendng_totamt_ct_incls_mendng"),
    "hmvAuditIndvdlBySttusV2": (
        "nm fscl_year ofcps mendng_totamt stk_bsd_pd_mendng_totamt_knd stk_bsd_pd_mendng_totamt_qty "
        "stk_bsd_pd_mendng_totamt_amt stk_opt_exrcsbl_qty stk_opt_unexrcsbl_qty stk_opt_exrc_pr "
        "stk_opt_rmn_blce othr_stk_bsd_cmpn_unpyd_qty othr_stk_bsd_cmpn_mkt_vl rm"
    ),
    "hyslrChgSttus": ("change_on mxmm_shrholdr_nm posesn_stock_co qota_rt change_cause rm"),
    "hyslrSttus": (
        "nm relate stock_knd bsis_posesn_stock_co bsis_posesn_stock_qota_rt trmend_posesn_stock_co "
        "trmend_posesn_stock_qota_rt rm"
    ),
    "indvdlByPay": ("nm ofcps mendng_totamt mendng_totamt_ct_incls_mendng"),
    "indvdlByPayV2": (
        "nm fscl_year ofcps mendng_totamt stk_bsd_pd_mendng_totamt_knd stk_bsd_pd_mendng_totamt_qty "
        "stk_bsd_pd_mendng_totamt_amt stk_opt_exrcsbl_qty stk_opt_unexrcsbl_qty stk_opt_exrc_pr "
        "stk_opt_rmn_blce othr_stk_bsd_cmpn_unpyd_qty othr_stk_bsd_cmpn_mkt_vl rm"
    ),
    "irdsSttus": (
        "isu_dcrs_de isu_dcrs_stle isu_dcrs_stock_knd isu_dcrs_qy isu_dcrs_mstvdv_fval_amount isu_dcrs_mstvdv_amount"
    ),
    "mrhlSttus": ("se shrholdr_co shrholdr_tot_co shrholdr_rate hold_stock_co stock_tot_co hold_stock_rate"),
    "newCaplScritsNrdmpBlce": (
        "remndr_exprtn1 remndr_exprtn2 yy1_below yy1_excess_yy5_below yy5_excess_yy10_below "
        "yy10_excess_yy15_below yy15_excess_yy20_below yy20_excess_yy30_below yy30_excess sm"
    ),
    "otrCprInvstmntSttus": (
        "inv_prm frst_acqs_de invstmnt_purps frst_acqs_amount bsis_blce_qy bsis_blce_qota_rt "
        "bsis_blce_acntbk_amount incrs_dcrs_acqs_dsps_qy incrs_dcrs_acqs_dsps_amount "
        "incrs_dcrs_evl_lstmn trmend_blce_qy trmend_blce_qota_rt trmend_blce_acntbk_amount "
        "recent_bsns_year_fnnr_sttus_tot_assets recent_bsns_year_fnnr_sttus_thstrm_ntpf"
    ),
    "outcmpnyDrctrNdChangeSttus": ("drctr_co otcmp_drctr_co apnt rlsofc mdstrm_resig"),
    "prvsrpCptalUseDtls": (
        "se_nm tm pay_de pay_amount cptal_use_plan real_cptal_use_sttus "
        "mtrpt_cptal_use_plan_useprps mtrpt_cptal_use_plan_prcure_amount real_cptal_use_dtls_cn "
        "real_cptal_use_dtls_amount dffrnc_occrrnc_resn"
    ),
    "pssrpCptalUseDtls": (
        "se_nm tm pay_de pay_amount on_dclrt_cptal_use_plan real_cptal_use_sttus "
        "rs_cptal_use_plan_useprps rs_cptal_use_plan_prcure_amount real_cptal_use_dtls_cn "
        "real_cptal_use_dtls_amount dffrnc_occrrnc_resn"
    ),
    "srtpdPsndbtNrdmpBlce": (
        "remndr_exprtn1 remndr_exprtn2 de10_below de10_excess_de30_below de30_excess_de90_below "
        "de90_excess_de180_below de180_excess_yy1_below sm isu_lmt remndr_lmt"
    ),
    "stockTotqySttus": (
        "se isu_stock_totqy now_to_isu_stock_totqy now_to_dcrs_stock_totqy redc profit_incnr "
        "rdmstk_repy etc istc_totqy tesstk_co distb_stock_co"
    ),
    "tesstkAcqsDspsSttus": (
        "acqs_mth1 acqs_mth2 acqs_mth3 stock_knd bsis_qy change_qy_acqs change_qy_dsps change_qy_incnr trmend_qy rm"
    ),
    "unrstExctvMendngSttus": ("se nmpr fyer_salary_totamt jan_salary_am rm"),
}
