"""Reading a submission's header, written with labels or with tags, into what it says of the filing and its parties.

Promises: every line with a label becomes a field with its group, known or not; a tag that is never closed, or closed
twice, spoils nothing; times are Eastern and carry their zone. Never: a value is guessed, and what is missing is null.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

from include.sources.sec.header_labels import ROLES, SECTIONS, Spelling, meaning, plain

EASTERN = ZoneInfo("America/New_York")

_LABEL = re.compile(r"([ \t]*)([A-Za-z][A-Za-z0-9 .,/&()'_-]{0,70}?):(?:[ \t]+(.*)|)$")
_TAG = re.compile(r"[ \t]*<(/?)([A-Za-z][A-Za-z0-9-]*)>(.*)$")
_SIC = re.compile(r"(.*?)\s*\[(\d*)\]$|(\d{1,4})$")
_ACT = re.compile(r"(?:19)?(\d\d)(?: Act)?$")


@dataclass(frozen=True)
class Field:
    """One labelled value: in which group it stands, what it is called there and what that means (None: nobody knows).

    `party` counts the parties from one, 0 is the filing itself; `role` is the party's, `section` the group within it,
    of which `section_number` counts those of one name.
    """

    position: int
    party: int
    role: str
    section: str
    section_number: int
    label: str
    meaning: str | None
    spelling: Spelling
    value: str


@dataclass(frozen=True)
class Header:
    """A header as read. `dialect` is "labels" or "tags", "none" where there is no header."""

    dialect: str
    fields: tuple[Field, ...]

    def first(self, name: str, *, party: int = 0, section: str = "") -> str | None:
        """Return the first value of that meaning, None where it is missing or blank."""
        return next(iter(self.all(name, party=party, section=section)), None)

    def all(self, name: str, *, party: int = 0, section: str = "") -> list[str]:
        """Return all values of that meaning that are not blank."""
        return [
            each.value
            for each in self.fields
            if each.meaning == name and each.party == party and each.value and section in ("", each.section)
        ]

    def parties(self) -> Iterator[tuple[int, str]]:
        """Return the numbers and roles of the parties, in order."""
        yield from dict.fromkeys((each.party, each.role) for each in self.fields if each.party)


def parse(text: str) -> Header:
    """Read a header's text; one without any label gives no field."""
    lines = [line for line in text.splitlines() if line.strip()]
    labels = sum(1 for line in lines if _LABEL.match(line))
    if not labels and not any(_TAG.match(line) for line in lines):
        return Header("none", ())
    reader = _Reader(lines)
    dialect = "tags" if labels == 0 else "labels"
    return Header(dialect, tuple(reader.read()))


@dataclass
class _Reader:
    """Goes through the lines and knows in which group it is."""

    lines: list[str]
    party: int = 0
    role: str = ""
    section: str = ""
    numbers: dict[tuple[int, str], int] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)

    def read(self) -> Iterator[Field]:
        # Somebody may have taken the indentation away; then the names alone tell the groups.
        is_flat = not any(line[:1] in " \t" for line in self.lines)
        closed = {found[2].upper() for line in self.lines if (found := _TAG.match(line)) and found[1]}
        position, last = 0, None
        for number, line in enumerate(self.lines):
            if found := _TAG.match(line):
                given = self._tag(found, closed)
            elif found := _LABEL.match(line):
                given = self._label(found, self._depth(number + 1), is_flat)
            elif last is not None:
                # A value goes on in the next line.
                last = Field(**{**vars(last), "value": f"{last.value} {line.strip()}".strip()})
                continue
            else:
                continue
            if last is not None:
                yield last
                last = None
            if given is not None:
                position += 1
                last = self._field(position, *given)
        if last is not None:
            yield last

    def _depth(self, number: int) -> int:
        line = self.lines[number] if number < len(self.lines) else ""
        return len(line) - len(line.lstrip(" \t"))

    def _field(self, position: int, label: str, value: str) -> Field:
        of_party = self.party > 0
        name, spelling = meaning(label, of_party=of_party)
        count = self.numbers.get((self.party, self.section), 1) if self.section else 0
        return Field(position, self.party, self.role, self.section, count, label, name, spelling, value.strip())

    def _label(self, found: re.Match[str], next_depth: int, is_flat: bool) -> tuple[str, str] | None:
        depth, label, value = len(found[1]), found[2], (found[3] or "").strip()
        words = plain(label)
        begins_group = not value and (next_depth > depth if not is_flat else words in ROLES | SECTIONS)
        if begins_group and (words in ROLES or (depth == 0 and words not in SECTIONS)):
            self._begin_party(words)
            return None
        if begins_group:
            self._begin_section(words)
            return None
        if not value and (words in ROLES or words in SECTIONS):
            # A group with nothing in it.
            (self._begin_party if words in ROLES else self._begin_section)(words)
            return None
        if depth == 0 and (not is_flat or meaning(label, of_party=True)[0] is None):
            self.party_over()
        return label, value

    def _tag(self, found: re.Match[str], closed: set[str]) -> tuple[str, str] | None:
        is_end, tag, value = bool(found[1]), found[2], found[3].strip()
        words, upper = plain(tag), tag.upper()
        if is_end:
            if upper in self.tags:
                del self.tags[self.tags.index(upper) :]
            self._group_over(words)
            return None
        is_group = not value and (upper in closed or words in ROLES or words in SECTIONS)
        if not is_group:
            if not self.tags and self.party:
                self.party_over()
            return tag, value
        if words not in SECTIONS and not any(plain(tag) in ROLES for tag in self.tags):
            # A group of the filing's own, e.g. a fund's series, which may follow the parties.
            self.party_over()
        self.tags.append(upper)
        if words in ROLES:
            self._begin_party(words)
        else:
            self._begin_section(words)
        return None

    def _begin_party(self, role: str) -> None:
        self.party = max((party for party, _ in self.numbers), default=0) + 1
        self.role, self.section = role, ""
        self.numbers[(self.party, "")] = 1

    def _begin_section(self, section: str) -> None:
        self.section = section
        self.numbers[(self.party, section)] = self.numbers.get((self.party, section), 0) + 1

    def _group_over(self, words: str) -> None:
        if words in ROLES:
            self.party_over()
        elif words == self.section:
            self.section = plain(self.tags[-1]) if self.tags and plain(self.tags[-1]) not in ROLES else ""

    def party_over(self) -> None:
        """What comes now is about the filing again."""
        self.party, self.role, self.section = 0, "", ""


# --- values


def day(text: str | None) -> date | None:
    """Return the day that eight digits name, None where they name none."""
    if not text or not re.fullmatch(r"[0-9]{8}", text):
        return None
    try:
        return date(int(text[:4]), int(text[4:6]), int(text[6:]))
    except ValueError:
        return None


def instant(text: str | None) -> datetime | None:
    """Return the instant of fourteen digits on a clock in New York, None where they name none."""
    if not text or not re.fullmatch(r"[0-9]{14}", text):
        return None
    try:
        return datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=EASTERN).astimezone(UTC)
    except ValueError:
        return None


def whole(text: str | None) -> int | None:
    """Return a number of at most ten digits, as a CIK has, None where it is none."""
    return int(text) if text and re.fullmatch(r"[0-9]{1,10}", text) else None


def count(text: str | None) -> int | None:
    """Return a count, None where it is none or far beyond what can be counted."""
    return int(text) if text and re.fullmatch(r"[0-9]{1,7}", text) else None


def sic(text: str | None) -> tuple[str | None, str | None]:
    """Return code and wording of an industry: `AIRCRAFT & PARTS [3720]` has both, the tags' `3720` only the code."""
    found = _SIC.match((text or "").strip())
    if not found:
        return None, text or None
    return found[2] or found[3] or None, found[1] or None


def act(text: str | None) -> str | None:
    """Return the act by the last two digits of its year: `1934 Act` and `34` are the same."""
    found = _ACT.match(text or "")
    return found[1] if found else text
