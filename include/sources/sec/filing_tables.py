"""The SEC's tables of what is in filings: their documents, their headers and their XBRL facts; declared once.

All of them have the accession number in front, so that what a later filing says of the same thing stands beside what
an earlier one said. The filing date is the header's own, or that of the index where the header has none.
"""

from __future__ import annotations

from include.contract import Column, Rule, Table, Usual
from include.sources.sec.xbrl import DECIMALS, DIGITS

_ACCESSION = Column("accession", "text", "Number of the filing, with its dashes")
_FILED = Column("filed_date", "date", "Filing date as the header says, or the index where it has none")
_PARTY = Column("party", "integer", "Number of the party in the header, from 1")
_INSTANCE = Column("instance", "text", "Name of the instance's file within the filing")

TEXTS = Table(
    schema="filings",
    name="sec_texts",
    comment="Complete submissions as they were read: how many documents they hold and what kind of XBRL",
    columns=(
        _ACCESSION,
        _FILED,
        Column("released_date", "date", "Day in its first line: when it was made public", nullable=True),
        Column("is_pem", "boolean", "It came as privacy-enhanced mail, as until about 2005"),
        Column("is_whole", "boolean", "Its end was there; false: it was cut off, or its last document was"),
        Column("size", "bigint", "Bytes"),
        Column("declared_documents", "integer", "Documents as the header counts them", nullable=True),
        Column("documents", "integer", "Documents that are there; the header often counts one or two more"),
        Column("instances", "integer", "XBRL instances among them"),
        Column("inline_document", "text", "First document with inline XBRL, null where there is none", nullable=True),
    ),
    key=("accession",),
    session_date="filed_date",
    rules=(Rule("accession is not blank", "not_blank", ("accession",)),),
)

DOCUMENTS = Table(
    schema="filings",
    name="sec_documents",
    comment="Documents of filings, with the place at which each stands in the stored text of its submission",
    columns=(
        _ACCESSION,
        Column("number", "integer", "Order in the submission, from 1; the first is the primary document"),
        _FILED,
        Column("sequence", "integer", "Number that the filer gave; with gaps and repeats", nullable=True),
        Column("type", "text", "Type as given, e.g. 10-K, EX-99.1, GRAPHIC, XML"),
        Column("filename", "text", "Name of the file; missing in old filings, and it may repeat", nullable=True),
        Column("description", "text", "Description as given", nullable=True),
        Column("wrapper", "text", "What EDGAR wrapped around it: XBRL, XML, PDF, JSON", nullable=True),
        Column("charset", "text", "utf-8, cp1252 or latin-1, whichever reads all of it first; binary"),
        Column("is_uuencoded", "boolean", "It stands in the submission uuencoded"),
        Column("text_start", "bigint", "Bytes of the stored submission in front of it"),
        Column("text_length", "bigint", "Bytes that it takes there"),
        Column("size", "bigint", "Bytes of the document itself"),
        Column("sha256", "text", "Hash of the document itself, in hex"),
        Column("defect", "text", "What is wrong with it, e.g. that it was cut off", nullable=True),
    ),
    key=("accession", "number"),
    session_date="filed_date",
    rules=(Rule("size is not negative", "not_negative", ("size",)),),
)

HEADERS = Table(
    schema="filings",
    name="sec_headers",
    comment="What the header of a submission says of the filing itself",
    columns=(
        _ACCESSION,
        _FILED,
        Column("dialect", "text", "labels, tags (as in the daily feed), or none where there is no header"),
        Column("form", "text", "Form type", nullable=True),
        Column("header_filed_date", "date", "Filing date in the header", nullable=True),
        Column("accepted_at", "timestamptz", "When EDGAR accepted it; missing in the 1990s", nullable=True),
        Column("accepted_text", "text", "The same as given, on the clock of New York", nullable=True),
        Column("released_date", "date", "When it was made public", nullable=True),
        Column("changed_date", "date", "Date as of change", nullable=True),
        Column("effectiveness_date", "date", "When it became effective", nullable=True),
        Column("period_of_report", "date", "Period that it reports on", nullable=True),
        Column("public_document_count", "integer", "Documents as the header counts them", nullable=True),
        Column("items", "jsonb", "Items, as text, in order"),
        Column("is_private_to_public", "boolean", "It was made public long after it was filed, e.g. letters"),
        Column("parties", "integer", "Parties in the header"),
        Column("unknown_labels", "integer", "Fields whose label nobody knows; they are in sec_header_fields"),
        Column("renamed_labels", "integer", "Fields that are called otherwise than usual"),
    ),
    key=("accession",),
    session_date="filed_date",
    # What every header of today has; those of the 1990s, which only a backfill reads, have no time of acceptance.
    usual=(Usual("form", 0.05), Usual("header_filed_date", 0.05), Usual("accepted_at", 0.05)),
)

_ADDRESS = ("street1", "street2", "city", "state", "country", "zip")

PARTIES = Table(
    schema="filings",
    name="sec_header_parties",
    comment="Parties of filings as their headers describe them on that day",
    columns=(
        _ACCESSION,
        _PARTY,
        _FILED,
        Column("role", "text", "FILER, ISSUER, REPORTING OWNER, SUBJECT COMPANY, FILED BY, FILED FOR …"),
        Column("cik", "bigint", "Company or person, by the SEC's number", nullable=True),
        Column("name", "text", "Conformed name", nullable=True),
        Column("ein", "text", "Employer's number, called IRS NUMBER until 2025; zeros where unknown", nullable=True),
        Column("sic", "text", "Industry code", nullable=True),
        Column("sic_description", "text", "Industry in words", nullable=True),
        Column("organization", "text", "Office of the SEC that reviews it", nullable=True),
        Column("state_of_incorporation", "text", "EDGAR's code of state or country", nullable=True),
        Column("fiscal_year_end", "text", "Month and day, MMDD", nullable=True),
        Column("relationship", "text", "Relationship of an owner, in old headers", nullable=True),
        Column("form", "text", "Form type for this party", nullable=True),
        Column("act", "text", "Act by the last two digits of its year, e.g. 34; else as given", nullable=True),
        Column("file_number", "text", "SEC file number", nullable=True),
        Column("film_number", "text", "Film number", nullable=True),
        *(Column(f"business_{name}", "text", f"Business address: {name}", nullable=True) for name in _ADDRESS),
        Column("business_phone", "text", "Business phone as given", nullable=True),
        *(Column(f"mail_{name}", "text", f"Mailing address: {name}", nullable=True) for name in _ADDRESS),
    ),
    key=("accession", "party"),
    session_date="filed_date",
    usual=(Usual("cik", 0.05), Usual("name", 0.05)),
)

FORMER_NAMES = Table(
    schema="filings",
    name="sec_header_former_names",
    comment="Former names of parties as the headers of filings list them",
    columns=(
        _ACCESSION,
        _PARTY,
        Column("number", "integer", "Order in the header, from 1"),
        _FILED,
        Column("cik", "bigint", "Company or person, by the SEC's number", nullable=True),
        Column("former_name", "text", "Name until then", nullable=True),
        Column("changed_date", "date", "Day of the change", nullable=True),
    ),
    key=("accession", "party", "number"),
    session_date="filed_date",
)

FIELDS = Table(
    schema="filings",
    name="sec_header_fields",
    comment="Every labelled value of a header, known or not, with the group that it stands in",
    columns=(
        _ACCESSION,
        Column("number", "integer", "Order in the header, from 1"),
        _FILED,
        Column("party", "integer", "Number of the party, 0 where it is about the filing itself"),
        Column("role", "text", "Role of the party, empty for the filing itself"),
        Column("section", "text", "Group within it, e.g. COMPANY DATA, MAIL ADDRESS, SERIES; empty outside of groups"),
        Column("section_number", "integer", "Which of the groups of that name, from 1; 0 outside of groups"),
        Column("label", "text", "Label as given"),
        Column("meaning", "text", "What it says, by one name for all spellings; null: nobody knows", nullable=True),
        Column("spelling", "text", "usual, other (renamed, misspelt or a tag's) or unknown"),
        Column("value", "text", "Value as given"),
    ),
    key=("accession", "number"),
    session_date="filed_date",
    is_published=False,
)

XBRL = Table(
    schema="filings",
    name="sec_xbrl",
    comment="What XBRL a filing had when its submission was read; filings.sec_xbrl_states says how it stands now",
    columns=(
        _ACCESSION,
        _FILED,
        Column("state", "text", "facts, none (it has no XBRL) or not_converted (inline, its instance is not made yet)"),
        Column("instance", "text", "Name that the instance of inline XBRL will have", nullable=True),
    ),
    key=("accession",),
    session_date="filed_date",
)

INSTANCES = Table(
    schema="filings",
    name="sec_xbrl_instances",
    comment="XBRL instances that were read, and how much they hold",
    columns=(
        _ACCESSION,
        _INSTANCE,
        _FILED,
        Column("is_extracted", "boolean", "EDGAR extracted it from inline XBRL"),
        Column("facts", "integer", "Facts in it, those that could not be read included"),
        Column("rejected", "integer", "Facts and contexts that could not be read"),
        Column("contexts", "integer", "Contexts"),
        Column("units", "integer", "Units"),
        Column("footnotes", "integer", "Footnotes, by facts that they stand for"),
    ),
    key=("accession", "instance"),
    session_date="filed_date",
)

FACTS = Table(
    schema="filings",
    name="sec_xbrl_facts",
    comment="XBRL facts of filings as filed, each with its period, dimensions and unit",
    columns=(
        _ACCESSION,
        _INSTANCE,
        Column("number", "integer", "Order in the instance, from 1"),
        _FILED,
        Column("namespace", "text", "Namespace of the concept, which names taxonomy and year"),
        Column("concept", "text", "Concept with the instance's prefix, e.g. us-gaap:Assets"),
        Column("entity_scheme", "text", "What kind of number names the entity"),
        Column("entity", "text", "Whom it is about, usually a CIK with zeros in front"),
        Column("period_type", "text", "instant, duration or forever"),
        Column("period_start", "date", "First day of a duration, of any length", nullable=True),
        Column("period_end", "date", "Last day, or the day at whose end it held", nullable=True),
        Column("dimensions", "jsonb", "Member of each axis; of a typed one its element and value", nullable=True),
        Column("measure", "text", "Unit from its measures, e.g. USD, USD/shares, pure; null for text", nullable=True),
        Column("decimals", "text", "Decimals as given, e.g. -6 or INF", nullable=True),
        Column("precision", "text", "Precision as given, in old instances", nullable=True),
        Column("is_nil", "boolean", "It is said to have no value"),
        Column("value_text", "text", "Value as given, scaled; null where it is nil", nullable=True),
        Column(
            "value",
            "numeric",
            "The same as a number; null for text and for numbers of more digits than fit",
            nullable=True,
            precision=(DIGITS, DECIMALS),
        ),
        Column("language", "text", "Language of a text", nullable=True),
        Column("context_id", "text", "Name of the context in the instance"),
        Column("unit_id", "text", "Name of the unit in the instance", nullable=True),
        Column("fact_id", "text", "Name of the fact in the instance", nullable=True),
    ),
    key=("accession", "instance", "number"),
    session_date="filed_date",
)

FOOTNOTES = Table(
    schema="filings",
    name="sec_xbrl_footnotes",
    comment="Footnotes of XBRL facts, once for each fact that they stand for",
    columns=(
        _ACCESSION,
        _INSTANCE,
        Column("number", "integer", "Order of the footnote in the instance, from 1"),
        Column("fact_number", "integer", "Number of the fact, 0 where it belongs to none of the instance"),
        _FILED,
        Column("arcrole", "text", "How it relates to the fact", nullable=True),
        Column("role", "text", "Role of the footnote", nullable=True),
        Column("language", "text", "Language", nullable=True),
        Column("footnote", "text", "Text without markup"),
    ),
    key=("accession", "instance", "number", "fact_number"),
    session_date="filed_date",
)

SECTIONS = Table(
    schema="filings",
    name="sec_sections",
    comment="Annual and quarterly reports cut into their items, in order",
    columns=(
        _ACCESSION,
        Column("number", "integer", "Place in the report, from 0; 0 is what stands before the first item"),
        Column("cik", "bigint", "First filer, by the SEC's number"),
        Column("company_name", "text", "Its name in the header", nullable=True),
        Column("form", "text", "Form of the report, e.g. 10-K or 10-Q/A"),
        _FILED,
        Column("period_of_report", "date", "Period that it reports on, as the header says", nullable=True),
        Column("part", "text", "Part of the form, I to IV", nullable=True),
        Column("item", "text", "Item of the form, e.g. 1A; null before the first", nullable=True),
        Column("title", "text", "Heading of the item as given, empty where it has none"),
        Column("content", "text", "Its text: a line for a paragraph, and for a row with tabs between cells"),
    ),
    key=("accession", "number"),
    session_date="filed_date",
    rules=(Rule("accession is not blank", "not_blank", ("accession",)),),
)
