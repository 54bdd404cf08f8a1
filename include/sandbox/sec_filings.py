"""What filings hold: the complete submission of each as EDGAR writes it, and the instances that it extracts later.

Promises: everything follows from the filing's seed; the header says what the market says of the filing. Some
submissions have a count of documents that is too high, bytes of Windows, uuencoded parts, an instance of the old kind,
or one that is not made yet. Never: code is shared with what reads them.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from random import Random

from include.sandbox.sec_market import Filing, Party

_SECTIONS = {
    "Filer": "FILER",
    "Reporting": "REPORTING-OWNER",
    "Issuer": "ISSUER",
    "Subject": "SUBJECT COMPANY",
    "Filed by": "FILED BY",
    "Filed for": "FILED FOR",
}
_WITH_FACTS = ("10-K", "10-Q", "8-K", "20-F", "10-K/A", "8-K/A")
_OF_OWNERS = ("3", "4", "5", "3/A", "4/A", "5/A")
_CONCEPTS = (
    "Assets", "Liabilities", "StockholdersEquity", "Revenues", "NetIncomeLoss", "OperatingIncomeLoss",
    "CashAndCashEquivalentsAtCarryingValue", "AccountsPayableCurrent", "InventoryNet", "CommonStockSharesOutstanding",
)  # fmt: skip
_INSTANCE = "http://www.xbrl.org/2003/instance"


@dataclass(frozen=True)
class _Document:
    """One document: its type, its name, and its text as it stands between the tags."""

    type: str
    name: str
    text: bytes
    description: str = ""


def text(filing: Filing) -> bytes:
    """Return the complete submission of a filing."""
    random = Random(f"{filing.seed}/text")
    documents = [*_documents(filing, random)]
    lines = [
        f"<SEC-DOCUMENT>{filing.accession}.txt : {_released(filing):%Y%m%d}",
        f"<SEC-HEADER>{filing.accession}.hdr.sgml : {_released(filing):%Y%m%d}",
        *_header(filing, len(documents) + (random.random() < 0.15), random),
        "</SEC-HEADER>",
    ]
    parts = ["\n".join(lines).encode() + b"\n"]
    for number, document in enumerate(documents, start=1):
        # The numbers of what EDGAR adds have gaps.
        sequence = number if not document.description.startswith("IDEA") else 2 * number
        described = f"<DESCRIPTION>{document.description}\n" if document.description else ""
        front = (
            f"<DOCUMENT>\n<TYPE>{document.type}\n<SEQUENCE>{sequence}\n<FILENAME>{document.name}\n{described}<TEXT>\n"
        )
        parts += [front.encode(), document.text, b"\n</TEXT>\n</DOCUMENT>\n"]
    return b"".join([*parts, b"</SEC-DOCUMENT>\n"])


def single(filing: Filing, name: str, at: datetime) -> bytes | None:
    """Return a single file of a filing's folder at an instant: the instance, None for everything else."""
    if filing.form not in _WITH_FACTS or name != f"{_base(filing)}_htm.xml":
        return None
    if is_late(filing) and at < filing.accepted + timedelta(minutes=25):
        return None
    return _instance(filing)


def is_late(filing: Filing) -> bool:
    """Say whether the instance of its inline page is made only after the submission was published."""
    return filing.form in _WITH_FACTS and Random(f"{filing.seed}/late").random() < 0.33


def _released(filing: Filing) -> date:
    return filing.listed if filing.form == "UPLOAD" else filing.filed


def _base(filing: Filing) -> str:
    return f"x{filing.parties[0].cik}-{filing.accession[11:13]}{filing.accession[-6:]}"


# --- the header


def _header(filing: Filing, count: int, random: Random) -> Iterator[str]:
    yield f"<ACCEPTANCE-DATETIME>{filing.accepted:%Y%m%d%H%M%S}"
    if filing.form == "UPLOAD":
        yield "<PRIVATE-TO-PUBLIC>"
    yield f"ACCESSION NUMBER:\t\t{filing.accession}"
    yield f"CONFORMED SUBMISSION TYPE:\t{filing.form}"
    yield f"PUBLIC DOCUMENT COUNT:\t\t{count}"
    if filing.form in (*_WITH_FACTS, *_OF_OWNERS):
        yield f"CONFORMED PERIOD OF REPORT:\t{filing.accepted - timedelta(days=random.randrange(1, 90)):%Y%m%d}"
    for item in filing.items:
        yield f"ITEM INFORMATION:\t\t{item.partition(': ')[2]}"
    yield f"FILED AS OF DATE:\t\t{filing.filed:%Y%m%d}"
    yield f"DATE AS OF CHANGE:\t\t{filing.accepted:%Y%m%d}"
    for party in filing.parties:
        yield from _party(filing, party, Random(f"{party.cik}/header"))


def _party(filing: Filing, party: Party, random: Random) -> Iterator[str]:
    is_person = party.role == "Reporting"
    yield from ("", f"{_SECTIONS.get(party.role, party.role.upper())}:", "")
    yield "\tOWNER DATA:" if is_person else "\tCOMPANY DATA:\t"
    yield f"\t\tCOMPANY CONFORMED NAME:\t\t\t{party.name}"
    yield f"\t\tCENTRAL INDEX KEY:\t\t\t{party.cik:010d}"
    if is_person:
        yield "\t\tORGANIZATION NAME:"
    else:
        yield f"\t\tSTANDARD INDUSTRIAL CLASSIFICATION:\tGENERAL & OTHER [{random.randrange(1000, 9999)}]"
        yield "\t\tORGANIZATION NAME:           \t06 Technology"
        yield f"\t\tEIN:\t\t\t\t{random.randrange(10**9):09d}"
        yield f"\t\tSTATE OF INCORPORATION:\t\t\t{random.choice(('DE', 'NV', 'E9'))}"
        yield f"\t\tFISCAL YEAR END:\t\t\t{random.choice(('1231', '0630', '0229'))}"
    yield from ("", "\tFILING VALUES:", f"\t\tFORM TYPE:\t\t{filing.form}", "\t\tSEC ACT:\t\t1934 Act")
    yield f"\t\tSEC FILE NUMBER:\t001-{random.randrange(10000, 60000)}"
    for section in ("MAIL ADDRESS",) if is_person else ("BUSINESS ADDRESS", "MAIL ADDRESS"):
        yield from ("", f"\t{section}:\t", f"\t\tSTREET 1:\t\t{random.randrange(1, 9999)} MAIN STREET")
        yield from ("\t\tCITY:\t\t\tSPRINGFIELD", "\t\tSTATE:\t\t\tIL", "\t\tZIP:\t\t\t62701")
        if section == "BUSINESS ADDRESS":
            yield "\t\tBUSINESS PHONE:\t\t(217) 555-0100"
    for number in range(random.choice((0, 0, 1, 2))):
        yield from ("", "\tFORMER COMPANY:\t", f"\t\tFORMER CONFORMED NAME:\tFORMER {number} OF {party.cik}")
        yield f"\t\tDATE OF NAME CHANGE:\t20{10 + number}0{number + 1}15"


# --- documents


def _documents(filing: Filing, random: Random) -> Iterator[_Document]:
    base = _base(filing)
    if filing.form in _OF_OWNERS:
        yield _Document(filing.form, "form4.xml", _owners(filing), "PRIMARY DOCUMENT")
        return
    if filing.form == "UPLOAD":
        letter = b"<PDF>\n" + _uuencoded("filename1", random.randbytes(900)) + b"\n</PDF>"
        yield _Document("LETTER", "filename1.pdf", letter)
        yield _Document("TEXT-EXTRACT", "filename2.txt", b"We have reviewed your filing.\n")
        return
    if filing.form in _WITH_FACTS:
        yield _Document(filing.form, f"{base}.htm", b"<XBRL>\n" + _page(filing) + b"\n</XBRL>", filing.form)
        yield _Document("EX-101.SCH", f"{base}.xsd", b"<XBRL>\n<schema/>\n</XBRL>", "XBRL TAXONOMY EXTENSION SCHEMA")
    else:
        yield _Document(filing.form, f"{base}.htm", f"<html><body>{filing.form}</body></html>".encode(), filing.form)
    yield _Document("EX-99.1", "ex99.htm", b"<html><body>The company\x92s words</body></html>", "EXHIBIT 99.1")
    yield _Document("GRAPHIC", "logo.jpg", _uuencoded("logo.jpg", random.randbytes(random.randrange(1, 400))))
    if filing.form == "497":
        yield _Document("EX-101.INS", f"{base}.xml", b"<XBRL>\n" + _old_instance(filing) + b"\n</XBRL>")
    if filing.form in _WITH_FACTS and not is_late(filing):
        yield _Document("XML", "R1.htm", b"<html><body>Cover</body></html>", "IDEA: XBRL DOCUMENT")
        made = b"<XML>\n" + _instance(filing) + b"\n</XML>"
        yield _Document("XML", f"{base}_htm.xml", made, "IDEA: XBRL DOCUMENT")


def _owners(filing: Filing) -> bytes:
    owners = "".join(f"<rptOwnerCik>{p.cik:010d}</rptOwnerCik>" for p in filing.parties if p.role == "Reporting")
    return f'<XML>\n<?xml version="1.0"?>\n<ownershipDocument>{owners}</ownershipDocument>\n</XML>'.encode()


def _uuencoded(name: str, content: bytes) -> bytes:
    lines = b"".join(binascii.b2a_uu(content[at : at + 45]) for at in range(0, len(content), 45))
    return f"begin 644 {name}\n".encode() + lines + b"`\nend\n"


def _page(filing: Filing) -> bytes:
    return (
        '<?xml version="1.0" encoding="ASCII"?>\n<html xmlns="http://www.w3.org/1999/xhtml" '
        f'xmlns:ix="http://www.xbrl.org/2013/inlineXBRL"><body>{filing.form} of {filing.parties[0].cik}</body></html>'
    ).encode()


# --- instances


def _instance(filing: Filing) -> bytes:
    """The instance that EDGAR extracts: contexts, units, facts in order of the page."""
    random, end = Random(f"{filing.seed}/facts"), filing.filed - timedelta(days=40)
    cik, start = filing.parties[0].cik, end - timedelta(days=random.choice((90, 97, 111, 181, 363)))
    who = f'<entity><identifier scheme="http://www.sec.gov/CIK">{cik:010d}</identifier>'
    axis = '<xbrldi:explicitMember dimension="srt:ProductOrServiceAxis">us-gaap:ProductMember</xbrldi:explicitMember>'
    during = f"<period><startDate>{start}</startDate><endDate>{end}</endDate></period>"
    facts = [
        f'<dei:EntityCentralIndexKey contextRef="c-1" id="f-1">{cik:010d}</dei:EntityCentralIndexKey>',
        '<us-gaap:PolicyText contextRef="c-1" id="f-2">&lt;p&gt;Words &amp;amp; more&lt;/p&gt;</us-gaap:PolicyText>',
        '<us-gaap:DebtCurrent contextRef="c-2" id="f-3" unitRef="usd" xsi:nil="true"/>',
    ]
    for number in range(random.randrange(5, 40)):
        concept = random.choice(_CONCEPTS)
        unit = "shares" if concept.startswith("CommonStock") else "usd"
        context = random.choice(("c-1", "c-2", "c-3"))
        value = f"{random.randrange(-(10**6), 10**9)}000</us-gaap:{concept}>"
        facts.append(
            f'<us-gaap:{concept} contextRef="{context}" decimals="-3" id="f-{number + 4}" unitRef="{unit}">{value}'
        )
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n<xbrl xml:lang="en-US" xmlns="{_INSTANCE}"'
        ' xmlns:dei="http://xbrl.sec.gov/dei/2026" xmlns:iso4217="http://www.xbrl.org/2003/iso4217"'
        ' xmlns:link="http://www.xbrl.org/2003/linkbase" xmlns:us-gaap="http://fasb.org/us-gaap/2026"'
        ' xmlns:xbrldi="http://xbrl.org/2006/xbrldi" xmlns:xlink="http://www.w3.org/1999/xlink"'
        ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">\n'
        f'  <link:schemaRef xlink:href="{_base(filing)}.xsd" xlink:type="simple"/>\n'
        f'  <context id="c-1">{who}</entity>{during}</context>\n'
        f'  <context id="c-2">{who}</entity><period><instant>{end}</instant></period></context>\n'
        f'  <context id="c-3">{who}<segment>{axis}</segment></entity>{during}</context>\n'
        '  <unit id="usd"><measure>iso4217:USD</measure></unit>\n'
        '  <unit id="shares"><measure>shares</measure></unit>\n  ' + "\n  ".join(facts) + "\n</xbrl>"
    ).encode()


def _old_instance(filing: Filing) -> bytes:
    """An instance as filers made them themselves: prefixes everywhere, facts first, a footnote."""
    end = filing.filed - timedelta(days=30)
    return (
        f'<?xml version="1.0" encoding="us-ascii"?>\n<xbrli:xbrl xmlns:xbrli="{_INSTANCE}" '
        'xmlns:rr="http://xbrl.sec.gov/rr/2012" xmlns:link="http://www.xbrl.org/2003/linkbase" '
        'xmlns:xlink="http://www.w3.org/1999/xlink">\n'
        '<rr:ManagementFee contextRef="now" unitRef="pure" decimals="INF" id="fee">0.0045</rr:ManagementFee>\n'
        f'<xbrli:context id="now"><xbrli:entity><xbrli:identifier scheme="http://www.sec.gov/CIK">{filing.parties[0].cik:010d}'
        f"</xbrli:identifier></xbrli:entity><xbrli:period><xbrli:instant>{end}</xbrli:instant></xbrli:period></xbrli:context>\n"
        '<xbrli:unit id="pure"><xbrli:measure>xbrli:pure</xbrli:measure></xbrli:unit>\n'
        '<link:footnoteLink xlink:type="extended"><link:loc xlink:type="locator" xlink:href="#fee" xlink:label="a"/>'
        '<link:footnote xlink:type="resource" xlink:label="n" xml:lang="en-US">After waivers.</link:footnote>'
        '<link:footnoteArc xlink:type="arc" xlink:from="a" xlink:to="n" '
        'xlink:arcrole="http://www.xbrl.org/2003/arcrole/fact-footnote"/></link:footnoteLink>\n</xbrli:xbrl>'
    ).encode()
