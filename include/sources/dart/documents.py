"""A DART document: the archive of a filing, which of its files is the filing itself, and that one as chapters or text.

Promises: neither the order nor the size of the files says which one it is; all of them are named. Never: a file is
written under the name that the archive gives it, or an archive is believed about sizes that none of DART's has.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass

from include.contract import ParseError
from include.sources.dart import chapters
from include.sources.dart import text as reading
from include.sources.dart.answers import DAMAGED
from include.sources.dart.chapters import Section

# An archive that claims more than this, all of its files together, is none of DART's.
MOST_MEMBERS, LARGEST = 200, 256 << 20

_DOCUMENT_NAME = re.compile(rb"<DOCUMENT-NAME\b[^<>]*>([^<]*)", re.IGNORECASE)
# A file without any of them is something else, such as the list of companies.
_OF_A_DOCUMENT = re.compile(rb"<(?:DOCUMENT|HTML|BODY|SECTION-[1-5]|TABLE|DIV|P|PRE|SPAN|BR|FONT)\b", re.IGNORECASE)
_COMPANY_NAME = re.compile(r"<COMPANY-NAME\b[^<>]*>([^<]*)", re.IGNORECASE)
# What a document says of itself stands within its first so many characters.
_HEAD = 8_192


@dataclass(frozen=True)
class Member:
    """One file of a document's archive, with what it calls itself."""

    name: str
    content: bytes
    title: str


@dataclass(frozen=True)
class Document:
    """A document read: the member that is the filing, its company, how it was decoded, its chapters, other members."""

    member: str
    company: str | None
    encoding: str
    replaced: int
    sections: tuple[Section, ...]
    others: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        """All chapters in order, each under its heading."""
        parts = []
        for section in self.sections:
            parts += [section.title, section.text]
        return "\n".join(part for part in parts if part)


def read(archive: bytes, rcept_no: str, report_name: str = "") -> Document:
    """Read the archive of a filing.

    Raises:
        ParseError: it is no archive, holds no document or something else, or claims sizes that none of DART's has.
    """
    members = members_of(archive)
    chosen = main_member(members, rcept_no, report_name)
    decoded = reading.decode(chosen.content)
    company = _COMPANY_NAME.search(decoded.text, 0, _HEAD)
    return Document(
        chosen.name,
        (" ".join(reading.unescape(company[1]).split()) or None) if company else None,
        decoded.encoding,
        decoded.replaced,
        chapters.of(decoded.text),
        tuple((member.name, member.title) for member in members if member is not chosen),
    )


def plain_text(archive: bytes, rcept_no: str, report_name: str = "") -> reading.Decoded:
    """Return the plain text of a filing's own document, with how it was decoded.

    Raises:
        ParseError: as `read`.
    """
    return reading.plain(main_member(members_of(archive), rcept_no, report_name).content)


def members_of(archive: bytes) -> list[Member]:
    """Return the documents of an archive, read in memory and never written under their own names.

    Raises:
        ParseError: see `read`.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            entries = [each for each in opened.infolist() if not each.is_dir()]
            claimed = sum(each.file_size for each in entries)
            if len(entries) > MOST_MEMBERS or claimed > LARGEST:
                raise ParseError(f"the archive claims to hold {len(entries)} files of {claimed:,} bytes")
            found = []
            for each in entries:
                if not each.filename.lower().endswith((".xml", ".html", ".htm", ".txt")):
                    continue
                content = opened.read(each)
                name = each.filename.replace("\\", "/").rpartition("/")[2]
                # The name alone is decoded: the first so many bytes may end within a character.
                head = _DOCUMENT_NAME.search(content, 0, _HEAD)
                title = reading.unescape(reading.decode(head[1]).text) if head else ""
                found.append(Member(name, content, " ".join(title.split())))
    except DAMAGED as error:
        raise ParseError(f"the archive cannot be read: {error or type(error).__name__}") from None
    if not found:
        raise ParseError("the archive holds no document")
    return found


def main_member(members: Sequence[Member], rcept_no: str, report_name: str = "") -> Member:
    """Return the filing itself: the member named after it, else the one that calls itself so, else no attachment.

    Neither the order of an archive nor the size of its members says which one it is.

    Raises:
        ParseError: it is something else than a document.
    """
    chosen = _chosen(members, rcept_no, report_name)
    if not chosen.name.lower().endswith(".txt") and _OF_A_DOCUMENT.search(chosen.content) is None:
        raise ParseError(f"{chosen.name} in the archive is no document of DART's")
    return chosen


def _chosen(members: Sequence[Member], rcept_no: str, report_name: str) -> Member:
    for member in members:
        if member.name.rpartition(".")[0] == rcept_no:
            return member
    wanted = "".join(report_name.split())
    for member in members:
        title = "".join(member.title.split())
        if wanted and title and (title in wanted or wanted in title):
            return member
    return next((member for member in members if "_" not in member.name), members[0])
