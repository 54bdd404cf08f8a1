"""The audit: the health of every pipeline once a day, as incidents and in words.

Promises: what the lookout finds is found here too; publication that lags, alerts that wait, seen rows left behind and
what a source's view of doubts names are incidents as well, and end by themselves. Never: nothing is repaired, and a
stream that is well is said to be so.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from psycopg import sql

from include.contract import Stream
from include.engine import housekeeping, incidents, lookout
from include.engine.db import Connection, Row, connect, query, template
from include.engine.verdict import kst

PUBLICATION, OUTBOX = "publication/hub", "outbox/slack"
# So many doubts are told in words; a view has them all.
MOST_DOUBTS = 5


def audit(url: str, streams: Sequence[Stream], behind: datetime | None, slack_grace: timedelta) -> list[str]:
    """Look at everything; return one line for each stream.

    Args:
        url: libpq address of the warehouse.
        streams: every stream that is in service.
        behind: since when publication lags; None where it does not.
        slack_grace: how long a message may wait for Slack.
    """
    lookout.look(url, streams)
    housekeeping.measure(url)
    connection = connect(url, application="daybook audit", statement_timeout=30, autocommit=True)
    try:
        _publication(connection, behind)
        _outbox(connection, slack_grace)
        _doubts(connection, streams)
        rows = connection.execute(query("status.streams")).fetchall()
        open_ones = connection.execute(query("incidents.listed"), {"since": None}).fetchall()
    finally:
        connection.close()
    return [_line(row, [each for each in open_ones if each["stream"] == row["stream"]]) for row in rows]


def _publication(connection: Connection, behind: datetime | None) -> None:
    if behind is None:
        incidents.close(connection, [PUBLICATION], "everything that changed is published.")
        return
    text = f"Publication lags since {kst(behind)}: files or changes wait. Look at the runs of the DAG publish."
    incidents.open(connection, key=PUBLICATION, severity="warning", text=text)


def _outbox(connection: Connection, grace: timedelta) -> None:
    row = connection.execute(query("alerts.waiting")).fetchone()
    assert row is not None
    if row["since"] is None:
        incidents.close(connection, [OUTBOX], "no alert waits for Slack.")
    if row["since"] is None or row["now"] - row["since"] <= grace:
        # What waits for less than that is no matter of the audit's; a sender that Slack refuses may have told it.
        return
    text = f"{row['waiting']} alerts wait for Slack, the oldest since {kst(row['since'])}. See the connection slack."
    incidents.open(connection, key=OUTBOX, severity="error", text=text)


def _doubts(connection: Connection, streams: Sequence[Stream]) -> None:
    """Open an incident for a stream of which its source's view `<source>_doubts` says something, and end it."""
    found: dict[str, list[str]] = {stream.name: [] for stream in streams}
    for view in connection.execute(query("lookout.views_of_doubts")).fetchall():
        named = sql.Identifier(view["table_schema"], view["table_name"])
        for row in connection.execute(template("listing.doubts", view=named)).fetchall():
            found.get(row["stream"], []).append(row["says"])
    for stream, says in found.items():
        key = f"doubtful/{stream}"
        if not says:
            incidents.close(connection, [key], f"nothing of {stream} is doubtful any more.")
            continue
        more = f"; and {len(says) - MOST_DOUBTS} more" if says[MOST_DOUBTS:] else ""
        text = f"{stream}: {'; '.join(says[:MOST_DOUBTS])}{more}. Every answer was fine: look whether it still comes."
        incidents.open(connection, key=key, severity="warning", stream=stream, text=text)


def _line(row: Row, open_ones: Sequence[Row]) -> str:
    stands = f"{row['stream']}: {row['cycle_status'] or 'no window yet'}, checkpoint {row['checkpoint'] or '–'}"
    stands += f", {row['pending']} pending, {row['quarantined']} in quarantine"
    if not open_ones:
        return f"WELL – {stands}"
    return f"ILL – {stands}: " + "; ".join(each["text"] for each in open_ones)
