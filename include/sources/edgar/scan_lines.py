"""The lines of the scan over all companies: 33, each with the concepts that it may be read from, the best first.

Promises: data alone. What a line is called is ours; concepts are named as their taxonomies name them. A concept stands
in a list only where it means the line itself, or what stands for it in companies that do not report it; which one was
taken stands in the file (`fallbacks`). Never: concepts are added up, and a line is worked out from others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

US, IFRS = "us-gaap", "ifrs-full"
Kind = Literal["flow", "stock", "per_share", "shares"]


@dataclass(frozen=True)
class Line:
    """One column of the scan.

    `kind`: money over the fiscal year or at its end, money a share, or a mean number of shares, both over the year.
    `us` and `ifrs` are its concepts, the first that the report of the year gives is taken.
    """

    name: str
    kind: Kind
    about: str
    us: tuple[str, ...]
    ifrs: tuple[str, ...]

    @property
    def concepts(self) -> tuple[tuple[str, str], ...]:
        """Its concepts with their taxonomies, in order."""
        return (*((US, each) for each in self.us), *((IFRS, each) for each in self.ifrs))


LINES: tuple[Line, ...] = (
    Line(
        "revenue",
        "flow",
        "Revenue; total before that from contracts, which a lender or lessor has beside other revenue",
        (
            "Revenues",
            "RevenueFromContractWithCustomerExcludingAssessedTax",
            "RevenueFromContractWithCustomerIncludingAssessedTax",
            "SalesRevenueNet",
            "RevenuesNetOfInterestExpense",
        ),
        ("Revenue", "RevenueFromContractsWithCustomers"),
    ),
    Line(
        "cost_of_revenue",
        "flow",
        "Cost of what was sold",
        ("CostOfRevenue", "CostOfGoodsAndServicesSold", "CostOfGoodsSold"),
        ("CostOfSales",),
    ),
    Line("gross_profit", "flow", "Gross profit", ("GrossProfit",), ("GrossProfit",)),
    Line(
        "research_and_development",
        "flow",
        "Research and development",
        ("ResearchAndDevelopmentExpense", "ResearchAndDevelopmentExpenseExcludingAcquiredInProcessCost"),
        ("ResearchAndDevelopmentExpense",),
    ),
    Line(
        "selling_general_administrative",
        "flow",
        "Selling, general and administrative expense",
        ("SellingGeneralAndAdministrativeExpense",),
        ("SellingGeneralAndAdministrativeExpense",),
    ),
    Line("operating_expenses", "flow", "Operating expenses as totalled", ("OperatingExpenses",), ("OperatingExpense",)),
    Line(
        "operating_income",
        "flow",
        "Operating income or loss",
        ("OperatingIncomeLoss",),
        ("ProfitLossFromOperatingActivities",),
    ),
    Line(
        "interest_expense",
        "flow",
        "Interest expense",
        ("InterestExpense", "InterestExpenseNonoperating", "InterestExpenseDebt"),
        ("InterestExpense", "FinanceCosts"),
    ),
    Line(
        "pretax_income",
        "flow",
        "Income before taxes",
        (
            "IncomeLossFromContinuingOperationsBeforeIncomeTaxesExtraordinaryItemsNoncontrollingInterest",
            "IncomeLossFromContinuingOperationsBeforeIncomeTaxesMinorityInterestAndIncomeLossFromEquityMethodInvestments",
        ),
        ("ProfitLossBeforeTax",),
    ),
    Line(
        "income_tax",
        "flow",
        "Income tax expense or benefit",
        ("IncomeTaxExpenseBenefit",),
        ("IncomeTaxExpenseContinuingOperations",),
    ),
    Line(
        "net_income",
        "flow",
        "Net income of the parent's owners; of all owners where that is all there is",
        ("NetIncomeLoss", "ProfitLoss", "NetIncomeLossAvailableToCommonStockholdersBasic"),
        ("ProfitLossAttributableToOwnersOfParent", "ProfitLoss"),
    ),
    Line(
        "net_income_with_minorities",
        "flow",
        "Net income of all owners",
        ("ProfitLoss",),
        ("ProfitLoss",),
    ),
    Line(
        "eps_basic",
        "per_share",
        "Earnings a share, basic",
        ("EarningsPerShareBasic", "EarningsPerShareBasicAndDiluted"),
        ("BasicEarningsLossPerShare", "BasicAndDilutedEarningsLossPerShare"),
    ),
    Line(
        "eps_diluted",
        "per_share",
        "Earnings a share, diluted",
        ("EarningsPerShareDiluted", "EarningsPerShareBasicAndDiluted"),
        ("DilutedEarningsLossPerShare", "BasicAndDilutedEarningsLossPerShare"),
    ),
    Line(
        "shares_diluted",
        "shares",
        "Weighted mean of shares, diluted",
        ("WeightedAverageNumberOfDilutedSharesOutstanding", "WeightedAverageNumberOfShareOutstandingBasicAndDiluted"),
        ("AdjustedWeightedAverageShares",),
    ),
    Line("assets", "stock", "Assets", ("Assets",), ("Assets",)),
    Line("current_assets", "stock", "Current assets", ("AssetsCurrent",), ("CurrentAssets",)),
    Line(
        "cash",
        "stock",
        "Cash and cash equivalents; with what is restricted where that is all there is",
        (
            "CashAndCashEquivalentsAtCarryingValue",
            "CashCashEquivalentsRestrictedCashAndRestrictedCashEquivalents",
            "CashAndDueFromBanks",
        ),
        ("CashAndCashEquivalents",),
    ),
    Line(
        "receivables",
        "stock",
        "Receivables within a year",
        ("AccountsReceivableNetCurrent", "ReceivablesNetCurrent"),
        ("TradeAndOtherCurrentReceivables", "CurrentTradeReceivables"),
    ),
    Line("inventory", "stock", "Inventory", ("InventoryNet",), ("Inventories",)),
    Line(
        "property",
        "stock",
        "Property, plant and equipment, net",
        (
            "PropertyPlantAndEquipmentNet",
            "PropertyPlantAndEquipmentAndFinanceLeaseRightOfUseAssetAfterAccumulatedDepreciationAndAmortization",
        ),
        ("PropertyPlantAndEquipment", "PropertyPlantAndEquipmentIncludingRightofuseAssets"),
    ),
    Line("goodwill", "stock", "Goodwill", ("Goodwill",), ("Goodwill",)),
    Line("liabilities", "stock", "Liabilities", ("Liabilities",), ("Liabilities",)),
    Line("current_liabilities", "stock", "Current liabilities", ("LiabilitiesCurrent",), ("CurrentLiabilities",)),
    Line(
        "payables",
        "stock",
        "Payables within a year",
        ("AccountsPayableCurrent", "AccountsPayableTradeCurrent"),
        ("TradeAndOtherCurrentPayables", "TradeAndOtherCurrentPayablesToTradeSuppliers"),
    ),
    Line(
        "long_term_debt",
        "stock",
        "Debt that is due later than within a year; all long-term debt where that is all there is",
        ("LongTermDebtNoncurrent", "LongTermDebtAndCapitalLeaseObligations", "LongTermDebt"),
        ("LongtermBorrowings", "NoncurrentPortionOfNoncurrentBorrowings"),
    ),
    Line(
        "retained_earnings",
        "stock",
        "Retained earnings or accumulated deficit",
        ("RetainedEarningsAccumulatedDeficit",),
        ("RetainedEarnings",),
    ),
    Line(
        "equity",
        "stock",
        "Equity of the parent's owners; of all owners where that is all there is",
        ("StockholdersEquity", "StockholdersEquityIncludingPortionAttributableToNoncontrollingInterest"),
        ("EquityAttributableToOwnersOfParent", "Equity"),
    ),
    Line(
        "operating_cash_flow",
        "flow",
        "Cash from operations",
        (
            "NetCashProvidedByUsedInOperatingActivities",
            "NetCashProvidedByUsedInOperatingActivitiesContinuingOperations",
        ),
        ("CashFlowsFromUsedInOperatingActivities",),
    ),
    Line(
        "investing_cash_flow",
        "flow",
        "Cash from investing",
        (
            "NetCashProvidedByUsedInInvestingActivities",
            "NetCashProvidedByUsedInInvestingActivitiesContinuingOperations",
        ),
        ("CashFlowsFromUsedInInvestingActivities",),
    ),
    Line(
        "financing_cash_flow",
        "flow",
        "Cash from financing",
        (
            "NetCashProvidedByUsedInFinancingActivities",
            "NetCashProvidedByUsedInFinancingActivitiesContinuingOperations",
        ),
        ("CashFlowsFromUsedInFinancingActivities",),
    ),
    Line(
        "capital_expenditure",
        "flow",
        "Paid for property, plant and equipment",
        ("PaymentsToAcquirePropertyPlantAndEquipment", "PaymentsToAcquireProductiveAssets"),
        ("PurchaseOfPropertyPlantAndEquipmentClassifiedAsInvestingActivities",),
    ),
    Line(
        "dividends_paid",
        "flow",
        "Dividends paid",
        ("PaymentsOfDividends", "PaymentsOfDividendsCommonStock"),
        ("DividendsPaidClassifiedAsFinancingActivities", "DividendsPaid"),
    ),
)
