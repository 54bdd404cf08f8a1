"""Whether an answer of the model is one: shape, lengths, language.

Promises: pure; what passes can be shown as it is. Never: an answer is mended, as half of one is none.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec

from include.analysis.prompts import LONGEST_POINT, LONGEST_SUMMARY, MOST_POINTS

# By which points are joined where they are kept.
JOINT = "|||"
# At least so much of the letters of an answer is Korean: names, units and abbreviations are not.
LEAST_KOREAN = 0.4

_HANGUL = re.compile(r"[가-힣]")
_LETTER = re.compile(r"[^\W\d_]")
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ufffd]")


class Refused(Exception):
    """The answer is none; the text says why."""


class Analysis(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What the model said of a filing."""

    summary: str
    key_points: Annotated[list[str], msgspec.Meta(min_length=1, max_length=MOST_POINTS)]
    sentiment: Literal["positive", "negative", "neutral"]


def read(text: str) -> Analysis:
    """Read an answer.

    Raises:
        Refused: it is cut, of another shape, too long, empty, or not in Korean.
    """
    try:
        found = msgspec.json.decode(text, type=Analysis)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise Refused(f"the answer is not of the form that was asked for: {error}") from None
    summary = " ".join(found.summary.split())
    points = [" ".join(point.split()) for point in found.key_points]
    if not 1 <= len(summary) <= LONGEST_SUMMARY:
        raise Refused(f"the summary has {len(summary)} characters, not 1 to {LONGEST_SUMMARY}")
    for point in points:
        if not 1 <= len(point) <= LONGEST_POINT:
            raise Refused(f"a key point has {len(point)} characters, not 1 to {LONGEST_POINT}")
        if JOINT in point:
            raise Refused(f"a key point has {JOINT} in it, by which points are joined")
    whole = f"{summary} {' '.join(points)}"
    if _UNSEEN.search(found.summary) or any(_UNSEEN.search(point) for point in found.key_points):
        raise Refused("the answer has characters in it that cannot be shown")
    for part in (summary, whole):
        if len(_HANGUL.findall(part)) < LEAST_KOREAN * max(len(_LETTER.findall(part)), 1):
            raise Refused("the answer is not in Korean")
    return Analysis(summary, points, found.sentiment)
