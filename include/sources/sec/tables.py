"""The SEC's tables of what was filed, by whom, and of who is listed where; declared once.

Each way by which a filing is found has a table of its own, whose rows no other way writes; the views of the migration
(`filings.sec_accessions`, `sec_parties`) put them together. So the order in which they are read cannot matter.
"""

from __future__ import annotations

from include.contract import Column, Rule, Subjects, Table

_ACCESSION = Column("accession", "text", "Number of the filing, with its dashes")
_CIK = Column("cik", "bigint", "Company or person, by the SEC's number")
_FORM = Column("form", "text", "Form type as given, e.g. 10-K/A")
_FILED = Column("filed_date", "date", "Official filing date; it may be before or after the day of acceptance")

FEED = Table(
    schema="filings",
    name="sec_feed",
    comment="Filings as the SEC's current feed first showed them, one row for each party in each role",
    columns=(
        _ACCESSION,
        _CIK,
        Column("role", "text", "Filer, Reporting, Issuer, Subject, Filed by …; empty where the feed names none"),
        Column("company_name", "text", "Name of the party as shown"),
        _FORM,
        _FILED,
        Column("accepted_at", "timestamptz", "When EDGAR accepted it"),
        Column("accepted_text", "text", "The same as given, with its offset from UTC"),
        Column("size_text", "text", "Size in words, e.g. 14 KB", nullable=True),
        Column("items", "text", "Items of a current report as shown, with ; between them", nullable=True),
        Column("folder_cik", "bigint", "Company under whose folder the feed links the filing", nullable=True),
        Column("seen_at", "timestamptz", "When the page was asked for that first showed it"),
        Column("seen_order", "bigint", "Minus the microseconds since 1970 of seen_at: what was seen first stays"),
    ),
    key=("accession", "cik", "role"),
    session_date="filed_date",
    rules=(Rule("form is not blank", "not_blank", ("form",)),),
    version="seen_order",
    replaces="nothing",
)

WALKS = Table(
    schema="filings",
    name="sec_feed_walks",
    comment="Each reading of the current feed: from which instant down to which it read, and whether that left a hole",
    columns=(
        Column("started_at", "timestamptz", "When its first page was asked for"),
        Column("session_date", "date", "Day in New York"),
        Column("known_until", "timestamptz", "Down to where it had to read: what was accepted before was known"),
        Column("newest_at", "timestamptz", "Newest acceptance that it showed, not after it began", nullable=True),
        Column(
            "read_until", "timestamptz", "Down to where it read, by the last entries of its last page", nullable=True
        ),
        Column("ended", "text", "known (it met what was known), end (of the feed) or cut (before either)"),
        Column("is_whole", "boolean", "Whether it leaves no hole; false: the next one reads the same ground again"),
        Column("pages", "integer", "Pages read"),
        Column("entries", "integer", "Entries on them, those shown twice included"),
    ),
    key=("started_at",),
    session_date="session_date",
    replaces="nothing",
    is_published=False,
)

_INDEX = (
    _ACCESSION,
    _CIK,
    _FORM,
    Column("company_name", "text", "Name of the party as listed"),
    _FILED,
    Column("path", "text", "Path of the complete submission, below /Archives/"),
)

DAILY_INDEX = Table(
    schema="filings",
    name="sec_daily_index",
    comment="Rows of the SEC's daily indexes: what was disseminated on a day, one row for each party and form",
    columns=(Column("index_date", "date", "Day of the index"), *_INDEX),
    key=("index_date", "accession", "cik", "form"),
    session_date="index_date",
    rules=(Rule("form is not blank", "not_blank", ("form",)),),
)

FULL_INDEX = Table(
    schema="filings",
    name="sec_full_index",
    comment="Rows of the SEC's quarterly indexes, which it rebuilds every week; rows that vanished are in the history",
    columns=(Column("quarter", "text", "Quarter of the index, e.g. 2026Q3"), *_INDEX),
    key=("quarter", "accession", "cik", "form"),
    session_date="filed_date",
    rules=(Rule("form is not blank", "not_blank", ("form",)),),
)

COMPANIES = Table(
    schema="filings",
    name="sec_companies",
    comment="Followed companies as their lists of filings describe them",
    columns=(
        _CIK,
        Column("name", "text", "Conformed name"),
        Column("entity_type", "text", "operating, other …", nullable=True),
        Column("sic", "text", "Industry code; empty for people and funds", nullable=True),
        Column("sic_description", "text", "Industry in words", nullable=True),
        Column("tickers", "jsonb", "Tickers, as given"),
        Column("exchanges", "jsonb", "Exchange of each ticker, as given"),
        Column("ein", "text", "Employer's number; 000000000 where unknown", nullable=True),
        Column("lei", "text", "Legal entity identifier", nullable=True),
        Column("category", "text", "Filer category, with the line breaks of the page that it is from", nullable=True),
        Column("fiscal_year_end", "text", "Month and day, MMDD", nullable=True),
        Column("state_of_incorporation", "text", "EDGAR's code of state or country", nullable=True),
        Column("addresses", "jsonb", "Business and mailing address, as given", nullable=True),
        Column("former_names", "jsonb", "Former names with their days, as given", nullable=True),
    ),
    key=("cik",),
    session_date=None,
    rules=(Rule("name is not blank", "not_blank", ("name",)),),
)

COMPANY_FILINGS = Table(
    schema="filings",
    name="sec_company_filings",
    comment="Filings of followed companies as their own lists show them",
    columns=(
        _CIK,
        _ACCESSION,
        _FORM,
        _FILED,
        Column("report_date", "date", "Period that it reports on", nullable=True),
        Column("accepted_text", "text", "Acceptance as given; its Z is false for some filers", nullable=True),
        Column("accepted_if_utc", "timestamptz", "The acceptance if the Z is true", nullable=True),
        Column("accepted_if_local", "timestamptz", "The acceptance if it is New York's clock", nullable=True),
        Column("act", "text", "Act under which it was filed", nullable=True),
        Column("file_number", "text", "SEC file number", nullable=True),
        Column("film_number", "text", "Film number", nullable=True),
        Column("items", "text", "Items of a current report, with commas", nullable=True),
        Column("core_type", "text", "Core document type; not the form", nullable=True),
        Column("size", "bigint", "Size of the submission in bytes", nullable=True),
        Column("is_xbrl", "boolean", "It has XBRL", nullable=True),
        Column("is_inline_xbrl", "boolean", "Its XBRL is inline", nullable=True),
        Column(
            "primary_document", "text", "Path of the main document, rendered where it begins with xsl", nullable=True
        ),
        Column("primary_description", "text", "What the main document is", nullable=True),
    ),
    key=("cik", "accession"),
    session_date="filed_date",
    rules=(Rule("form is not blank", "not_blank", ("form",)),),
    # The newest thousand move into older pages, which a poll does not read: nothing is gone because it is not shown.
    replaces="nothing",
)

TICKERS = Table(
    schema="filings",
    name="sec_tickers",
    comment="Tickers of companies and where they are listed today; the history tells until when another one had them",
    columns=(
        Column("ticker", "text", "Ticker as the SEC spells it, e.g. BRK-B"),
        _CIK,
        Column("exchange", "text", "Nasdaq, NYSE, OTC, CBOE; null where the SEC names none", nullable=True),
        Column("company_name", "text", "Name of the company"),
        Column("is_nasdaq", "boolean", "Listed on Nasdaq"),
        Column("is_nyse", "boolean", "Listed on NYSE"),
    ),
    key=("ticker", "cik"),
    session_date=None,
    rules=(Rule("ticker is not blank", "not_blank", ("ticker",)),),
)


def _view(name: str, comment: str, *columns: Column) -> Table:
    """A view of the migration that a stream asks for what to ask about; nothing is written to it."""
    return Table("filings", name, comment, columns, (columns[0].name,), None, is_published=False)


FEED_MARK = Subjects(
    _view("sec_feed_mark", "Down to where the feed is known", Column("subject", "text", "known/instant in UTC")),
    "subject",
    "is_known",
)


def listed(exchange: str) -> Subjects:
    """Return the companies that are listed on an exchange (nasdaq or nyse), as subjects."""
    view = _view("sec_universe", "Listed companies", Column("subject", "text", "CIK, without zeros in front"))
    return Subjects(view, "subject", f"is_{exchange}")
