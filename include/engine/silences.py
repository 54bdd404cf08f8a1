"""Silences: alerts that are not sent for a while, by whom, why and until when.

Promises: a silence always ends; what it keeps back stays in the outbox, marked with it. Never: an incident is hidden,
closed or kept from opening by one, and nothing is deleted.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from include.engine.db import Row, query, transaction

# What lasts longer than this is no while: make what is told right instead.
LONGEST = timedelta(days=366)


class SilenceRefused(Exception):
    """What was asked cannot be done; the text says why and what would do."""


def make(url: str, pattern: str, ends_at: datetime, who: str, why: str) -> Row:
    """Keep alerts whose key fits a pattern from being sent until an instant.

    Args:
        url: libpq address of the warehouse.
        pattern: the key; `*` stands for anything, as in `past-due/krx.*`.
        ends_at: when it ends, with its zone.
        who: who wants it.
        why: why, in words.

    Raises:
        SilenceRefused: who, why or the pattern is missing, or the end is past or more than a year away.
    """
    if not (pattern.strip() and who.strip() and why.strip()):
        raise SilenceRefused("Say which alerts, who wants it and why: all are kept and shown. Nothing was silenced.")
    if ends_at.tzinfo is None:
        raise SilenceRefused("Say in which zone the silence ends, e.g. 2026-09-16T12:00+09:00. Nothing was silenced.")
    values = {
        "pattern": pattern.strip(), "reason": why.strip(), "who": who.strip(), "ends_at": ends_at, "longest": LONGEST,
    }  # fmt: skip
    with transaction(url, application="daybook silences", statement_timeout=15) as connection:
        row = connection.execute(query("silences.make"), values).fetchone()
    if row is None:
        raise SilenceRefused(
            f"{ends_at.isoformat()} is past already, or more than {LONGEST.days} days away: a silence ends in the "
            "future, and some day it ends. Nothing was silenced."
        )
    return row


def lift(url: str, silence_id: int, who: str, why: str) -> Row:
    """End a silence before its time; what it kept back meanwhile is not sent.

    Raises:
        SilenceRefused: there is none of that number that holds, or nobody said who and why.
    """
    if not (who.strip() and why.strip()):
        raise SilenceRefused("Say who ends it and why: both are kept and shown. Nothing was changed.")
    values = {"id": silence_id, "who": who.strip(), "why": why.strip()}
    with transaction(url, application="daybook silences", statement_timeout=15) as connection:
        row = connection.execute(query("silences.lift"), values).fetchone()
    if row is None:
        raise SilenceRefused(f"No silence {silence_id} holds now; nothing was changed.")
    return row


def listed(url: str, *, everything: bool = False) -> list[Row]:
    """Return the silences that hold, or all that ever did, the newest first."""
    with transaction(url, application="daybook silences", statement_timeout=15) as connection:
        return connection.execute(query("silences.listed"), {"all": everything}).fetchall()
