"""The tables of DART's documents, declared once: a row for a report, one for each chapter, one for each table."""

from __future__ import annotations

from include.contract import Column, Rule, Table, Usual

_RECEIPT = Column("rcept_no", "text", "Receipt number of the report")
_CORP = Column("corp_code", "text", "Company as DART numbers it: eight digits")
_DATE = Column("rcept_date", "date", "Day of receipt in Seoul")
_ABOUT = (
    Column("corp_name", "text", "Company's name as the document has it", nullable=True),
    Column("stock_code", "text", "Stock code of six characters; null where it had none", nullable=True),
    Column("year", "text", "Year of the period that the title names"),
    _DATE,
    Column("report_type", "text", "Title with its period and without its marks, e.g. 사업보고서 (2025.12)"),
)
_COMPANY = Rule("company is not blank", "not_blank", ("corp_code",))

DOCUMENTS = Table(
    schema="filings",
    name="dart_documents",
    comment="Documents of periodic reports as they were read: which file of the archive, in which encoding, how much",
    columns=(
        _RECEIPT,
        _CORP,
        *_ABOUT,
        Column("report_period", "text", "Period that the title names, as YYYY.MM"),
        Column("is_correction", "boolean", "Whether its title says that it takes the place of an earlier report"),
        Column("main_file", "text", "File of the archive that is the report itself"),
        Column("other_files", "jsonb", "The archive's other documents: name and what each calls itself", nullable=True),
        Column("encoding", "text", "How its bytes were read: utf-8 or cp949"),
        Column("replaced_bytes", "integer", "Places that are no text in it and stand as U+FFFD; 0 in nearly all"),
        Column("sections", "integer", "Chapters"),
        Column("tables", "integer", "Tables"),
        Column("characters", "integer", "Characters of all chapters; 0 where it has no text, as of pictures alone"),
    ),
    key=("rcept_no",),
    session_date="rcept_date",
    rules=(_COMPANY,),
    usual=(Usual("corp_name", 0.05),),
)

DOCS = Table(
    schema="filings",
    name="dart_docs",
    comment="Chapters of periodic reports in order: text without that of the chapters within them, tables as lines",
    columns=(
        _RECEIPT,
        Column("section_order", "integer", "Place among the chapters of the report, from 0"),
        _CORP,
        *_ABOUT,
        Column("section_level", "smallint", "1 for a chapter, 2 and 3 within it; 0 for what stands before the first"),
        Column("section_parent", "integer", "Place of the chapter that it is in", nullable=True),
        Column("section_title", "text", "Heading"),
        Column("section_path", "text", "Headings from the outermost chapter to this one, with > between them"),
        Column(
            "section_slot",
            "text",
            "Official place of the chapter in the form (AASSOCNOTE), steadier than its heading",
            nullable=True,
        ),
        Column(
            "section_content", "text", "Its own text: a line for a paragraph, and for a row with tabs between cells"
        ),
        Column("section_tables", "integer", "Tables in its own text"),
    ),
    key=("rcept_no", "section_order"),
    session_date="rcept_date",
    rules=(_COMPANY,),
)

TABLES = Table(
    schema="filings",
    name="dart_doc_tables",
    comment="Tables of periodic reports as they would be seen, with the fields that standard forms name",
    columns=(
        _RECEIPT,
        Column("table_order", "integer", "Place among the tables of the report, from 0"),
        _CORP,
        _DATE,
        Column("section_order", "integer", "Chapter that it is in"),
        Column("table_group", "text", "Statement or note that it belongs to, as the form names it", nullable=True),
        Column("amounts_in", "text", "Unit of its amounts as written before it, e.g. 백만원", nullable=True),
        Column("is_unstructured", "boolean", "Whether one cell holds all of it line by line: it has no columns"),
        Column("cells", "jsonb", "Rows of texts; what a cell spans beside its first place is empty"),
        Column(
            "fields",
            "jsonb",
            "Cells that the form names: row and column from 0, name, value behind a choice or day, XBRL context",
            nullable=True,
        ),
    ),
    key=("rcept_no", "table_order"),
    session_date="rcept_date",
    rules=(_COMPANY,),
)
