"""KIND's tables, declared once: who is listed, and whom the policy leaves out.

Nothing is withdrawn from the companies: one that a single list does not show is still there. When one has departed is
for the delta to say (`collect.items`); the views of the migration put the two together.
"""

from __future__ import annotations

from include.contract import Column, Rule, Table

_RULES = (
    Rule("code is not blank", "not_blank", ("code",)),
    Rule("name is not blank", "not_blank", ("name",)),
)

COMPANIES = Table(
    schema="market",
    name="kind_companies",
    comment="Companies as KIND last listed them, those that have departed too; how they were before is in the history "
    "(KIND)",
    columns=(
        Column("code", "text", "Code of the common share: six digits or capital letters"),
        Column("name", "text", "Short name"),
        Column(
            "market",
            "text",
            "KOSPI or KOSDAQ; the label as given where it is another one, null where the list has none",
            nullable=True,
        ),
        Column("sector", "text", "Industry in words, as given", nullable=True),
        Column("products", "text", "Main products, as given", nullable=True),
        Column("listed_on", "date", "Day of listing on the market where it is now", nullable=True),
        Column("closing_month", "smallint", "Month in which the business year ends, 1 to 12", nullable=True),
        Column("representatives", "text", "Representatives, as given", nullable=True),
        Column("website", "text", "Web site, as given: often without a scheme", nullable=True),
        Column("region", "text", "Province, or country of a foreign issuer", nullable=True),
        Column("is_spac", "boolean", "Whether the name is that of a shell company for a merger (스팩)"),
        Column("is_reit", "boolean", "Whether name and industry are those of a real estate investment trust (리츠)"),
    ),
    key=("code",),
    session_date=None,
    rules=_RULES,
    replaces="nothing",
)

EXCLUDED = Table(
    schema="market",
    name="kind_excluded",
    comment="Companies that the newest list shows and that are left out by policy: those of KONEX (KIND)",
    columns=(
        Column("code", "text", "Code of the common share"),
        Column("name", "text", "Short name"),
        Column("market", "text", "Market for which it is left out"),
        Column("listed_on", "date", "Day of listing there", nullable=True),
    ),
    key=("code",),
    session_date=None,
    rules=_RULES,
    replaces="unit",
    is_published=False,
)
