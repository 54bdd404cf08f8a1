"""The way out of quarantine: look, read again, accept, or drop, each with who and why.

Promises: nothing leaves without a name and a reason; reading again goes through a replay like any other, so it is
leased and recorded; an accepted row is applied although it breaks the rule it broke. What is decided and the run that
carries it out are one transaction. Never: nothing is deleted.
"""

from __future__ import annotations

import json
from typing import Any

from include.contract import Stream
from include.engine.db import Connection, Row, query, transaction
from include.engine.delta import SMALL_LISTING
from include.engine.doubts import FEWER_ROWS


class QuarantineRefused(Exception):
    """What was asked cannot be done to this entry; the text says why and what would do."""


def entries(url: str, stream: str | None = None, state: str = "open", limit: int = 100) -> list[Row]:
    """Return entries, the newest first."""
    with transaction(url, application="daybook quarantine") as connection:
        return connection.execute(
            query("quarantine.entries"), {"stream": stream, "state": state, "limit": limit}
        ).fetchall()


def find(url: str, entry_id: int) -> Row:
    """Return one entry, whatever became of it.

    Raises:
        QuarantineRefused: there is none of that number.
    """
    with transaction(url, application="daybook quarantine") as connection:
        return _find(connection, entry_id)


def drop(url: str, entry_id: int, who: str, why: str) -> Row:
    """Close an entry for good: the row or unit is not wanted.

    Raises:
        QuarantineRefused: it is closed already, or who or why is missing.
    """
    with transaction(url, application="daybook quarantine") as connection:
        _take(connection, entry_id, who, why)
        return _resolve(connection, entry_id, "dropped", who, why)


def accept(url: str, stream: Stream, entry_id: int, who: str, why: str) -> str:
    """Accept a row that broke a rule, or what was doubted for its size, and have it read again; return the run's name.

    The word and the run are written together: neither is there without the other.

    Raises:
        QuarantineRefused: the entry is closed already, who or why is missing, or it broke no rule that can be waived
            (a unit or line that cannot be read, a repeated key, a missing value).
    """
    with transaction(url, application="daybook quarantine") as connection:
        entry = _take(connection, entry_id, who, why)
        may_be = {SMALL_LISTING, FEWER_ROWS, *(rule.name for table in stream.tables for rule in table.rules)}
        if entry["rule"] not in may_be:
            raise QuarantineRefused(
                f"Entry {entry_id} cannot be accepted: {entry['reason']}. No table could hold it. "
                "Mend the parser and retry, or drop it."
            )
        _resolve(connection, entry_id, "accepted", who, why)
        return _read_again(connection, stream, entry, who, why)


def retry(url: str, stream: Stream, entry_id: int, who: str, why: str) -> str:
    """Have an entry's unit read again by today's parser; return the replay run's name.

    Raises:
        QuarantineRefused: the entry is closed already, or who or why is missing.
    """
    with transaction(url, application="daybook quarantine") as connection:
        return _read_again(connection, stream, _take(connection, entry_id, who, why), who, why)


def _find(connection: Connection, entry_id: int) -> Row:
    row = connection.execute(query("quarantine.find"), {"id": entry_id}).fetchone()
    if row is None:
        raise QuarantineRefused(f"There is no quarantine entry {entry_id}; the list shows those that are open.")
    return row


def _take(connection: Connection, entry_id: int, who: str, why: str) -> Row:
    """Lock an open entry for the transaction, and read it: whoever comes second sees what the first has done."""
    if not who.strip() or not why.strip():
        raise QuarantineRefused("Say who wants it and why: both are kept with the entry. Nothing was done.")
    connection.execute(query("quarantine.lock"), {"id": entry_id})
    row = _find(connection, entry_id)
    if row["state"] != "open":
        raise QuarantineRefused(
            f"Entry {entry_id} is {row['state']} already, by {row['resolved_by']}: nothing was done."
        )
    return row


def _resolve(connection: Connection, entry_id: int, state: str, who: str, why: str) -> Row:
    row = connection.execute(
        query("quarantine.resolve"), {"id": entry_id, "state": state, "who": who, "why": why}
    ).fetchone()
    assert row is not None
    return row


def _read_again(connection: Connection, stream: Stream, entry: Row, who: str, why: str) -> str:
    """Write a replay run of one chunk that covers just this unit."""
    run_id = f"quarantine-{entry['quarantine_id']}-v{stream.parser_version}-{entry['attempts']}"
    values: dict[str, Any] = {
        "run_id": run_id,
        "stream": stream.name,
        "unit": entry["unit"],
        "who": who,
        "why": why,
        "chunk": json.dumps({"units": [entry["unit"]]}),
        "parsers": json.dumps({stream.name: stream.parser_version}),
    }
    connection.execute(query("quarantine.read_again"), values)
    return run_id
