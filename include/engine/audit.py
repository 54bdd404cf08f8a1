"""The audit: the health of every pipeline once a day, as incidents, in words, and as issues that are wanted.

Promises: what the lookout finds is found here too; publication that lags, alerts and issues that wait, seen rows left
behind, windows that end well and bring nothing, daily work that never came, a repository with too many commits and what
a source's view of doubts names are incidents as well, and end by themselves. A new audit replaces one that still runs,
which then writes nothing more. Never: nothing is repaired or sent, and a stream that is well is said to be so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from psycopg import sql

from include.contract import Stream
from include.engine import housekeeping, incidents, issues, lookout
from include.engine.db import Connection, Row, query, template, transaction
from include.engine.verdict import kst

PUBLICATION, OUTBOX = "publication/hub", "outbox/slack"
# The DAG that publishes, and its lease.
PUBLISH, HUB = "publish", "hub"
# So many doubts are told in words; a view has them all.
MOST_DOUBTS = 5
# Past so many commits a repository's history is slow, and is to be squashed.
MOST_COMMITS = 3_000
# For so many days with good windows nothing may be new, where something nearly always is.
QUIET_DAYS = 3


class Replaced(Exception):
    """A newer audit has taken the place of this one, which writes nothing more."""


@dataclass(frozen=True)
class Limits:
    """How long things may wait before the audit minds, and what the Hub allows in an hour and in five minutes."""

    slack: timedelta = timedelta(hours=1)
    github: timedelta = timedelta(hours=1)
    commits: int = 128
    requests: int = 1_000
    publication: timedelta = timedelta(hours=6)


@dataclass(frozen=True)
class Scan:
    """Files over all companies: the release, the names under which changes that they follow are counted, their DAG."""

    release: str
    marks: Sequence[str]
    job: str


def audit(
    url: str,
    streams: Sequence[Stream],
    behind: datetime | None,
    limits: Limits,
    owner: str,
    *,
    has_github: bool,
    scans: Sequence[Scan] = (),
) -> list[str]:
    """Look at everything; return one line for each stream, and what is left of each quota.

    Args:
        url: libpq address of the warehouse.
        streams: every stream that is in service.
        behind: since when publication lags; None where it does not.
        limits: what is allowed.
        owner: the task and run.
        has_github: whether issues are wanted.
        scans: the releases over all companies that are to be built.

    Raises:
        Replaced: a newer audit runs.
    """
    with transaction(url, application="daybook audit", statement_timeout=60) as connection:
        row = connection.execute(query("audit.begin"), {"owner": owner}).fetchone()
        assert row is not None
        audit_id: int = row["audit_id"]
    lookout.look(url, streams)
    housekeeping.measure(url)
    # Each look is a transaction of its own, which a newer audit waits for, and which none follows once there is one.
    for look in (
        lambda connection: _publication(connection, behind),
        lambda connection: _scans(connection, scans, limits.publication),
        lambda connection: _outbox(connection, limits.slack),
        lambda connection: _doubts(connection, streams),
        lambda connection: _quiet(connection, streams),
        lambda connection: lookout.miss(connection, (lookout.MAINTENANCE,), ever=True),
        _repositories,
        lambda connection: _github(connection, limits.github, has_github=has_github),
        lambda connection: issues.want(connection, opens=True) if has_github else None,
    ):
        with transaction(url, application="daybook audit", statement_timeout=30) as connection:
            if connection.execute(query("audit.hold"), {"audit": audit_id}).fetchone() is None:
                raise Replaced(f"a newer audit has taken the place of audit {audit_id}")
            look(connection)
    with transaction(url, application="daybook audit", statement_timeout=30) as connection:
        connection.execute(query("audit.end"), {"audit": audit_id})
        rows = connection.execute(query("status.streams")).fetchall()
        open_ones = connection.execute(query("incidents.listed"), {"since": None}).fetchall()
        values = {"commits": limits.commits, "requests": limits.requests}
        quotas = connection.execute(query("audit.quota"), values).fetchall()
    lookout.show_life(url, lookout.AUDIT)
    standing = [_line(row, [each for each in open_ones if each["stream"] == row["stream"]]) for row in rows]
    return standing + [f"QUOTA – {each['what']}: {each['used']:,} of {each['allowed']:,} used" for each in quotas]


def _publication(connection: Connection, behind: datetime | None) -> None:
    if behind is None:
        incidents.close(connection, [PUBLICATION], "everything that changed is published.")
        return
    row = connection.execute(query("audit.publication"), {"lease": HUB, "job": PUBLISH}).fetchone()
    assert row is not None
    waits = f"files wait to be sent ({row['waits']})" if row["waits"] else "what changed has no file yet"
    text = f"Publication lags since {kst(behind)}: {waits}; readers have what was sent before. "
    if row["paused_since"] is not None:
        text += f"The DAG {PUBLISH} is PAUSED in Airflow since {kst(row['paused_since'])}: unpause it."
    elif row["put_off_reason"]:
        text += f"The Hub asked for patience: {row['put_off_reason'][:300]}. It goes on by itself."
    else:
        text += f"The note of the newest run of the DAG {PUBLISH} says why; trigger it once that is mended."
    incidents.open(connection, key=PUBLICATION, severity="warning", text=text)


def _scans(connection: Connection, scans: Sequence[Scan], grace: timedelta) -> None:
    """Files over all companies are built by a DAG of their own, which nobody else misses."""
    for scan in scans:
        key = f"publication/{scan.release}"
        values = {"release": scan.release, "marks": list(scan.marks), "job": scan.job, "grace": grace}
        row = connection.execute(query("audit.scan_behind"), values).fetchone()
        if row is None:
            incidents.close(connection, [key], f"{scan.release} is built of all that changed.")
            continue
        text = (
            f"{scan.release} was not built since {kst(row['since'])}, and what it is made from changed; readers have "
        )
        text += "the files before. "
        if row["paused_since"] is not None:
            text += f"The DAG {scan.job} is PAUSED in Airflow since {kst(row['paused_since'])}: unpause and trigger it."
        else:
            text += f"The note of the newest run of the DAG {scan.job} says why; it builds nothing while a stream that "
            text += "feeds it has failed. Trigger it once that is mended."
        incidents.open(connection, key=key, severity="warning", text=text)


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


def _github(connection: Connection, grace: timedelta, *, has_github: bool) -> None:
    """Open an incident for issues that GitHub does not take, and end it where none waits or none is wanted."""
    waiting, since, now = issues.waiting(connection)
    if since is None or not has_github:
        incidents.close(connection, [issues.OUTBOX], "no issue waits for GitHub.", mended=since is None)
    elif now - since > grace:
        text = f"{waiting} issues wait for GitHub, the first since {kst(since)}. See the connection github."
        incidents.open(connection, key=issues.OUTBOX, severity="warning", text=text)


def _quiet(connection: Connection, streams: Sequence[Stream]) -> None:
    """A window that ends well and brings nothing is fine; days of them, where there was always something, are not."""
    values = {"streams": [stream.name for stream in streams], "days": QUIET_DAYS}
    quiet = {row["stream"]: row for row in connection.execute(query("audit.quiet"), values).fetchall()}
    for stream in streams:
        key, row = f"quiet/{stream.name}", quiet.get(stream.name)
        if row is None:
            incidents.close(connection, [key], f"{stream.name} brings something new again.")
            continue
        text = (
            f"{stream.name} is green and brought nothing new or changed since {row['since']}: {QUIET_DAYS} days, where "
            f"nearly every day had something (the last: {row['last']}). Look at its answers: a form that changed, or a "
            "filter, gives no error."
        )
        incidents.open(connection, key=key, severity="warning", stream=stream.name, text=text)


def _repositories(connection: Connection) -> None:
    """Ask for a squash of a repository that holds too many commits of ours."""
    for row in connection.execute(query("audit.repositories")).fetchall():
        key = f"commits/{row['repository']}"
        if row["commits"] <= MOST_COMMITS:
            incidents.close(connection, [key], f"{row['repository']} holds {row['commits']:,} commits.")
            continue
        text = (
            f"{row['repository']} holds {row['commits']:,} commits; past {MOST_COMMITS:,} its history is slow. Squash "
            f"it: `./run cli squash {row['repository']}`. Every file stays; older versions of them are lost."
        )
        incidents.open(connection, key=key, severity="warning", text=text)


def squashed(url: str, repository: str, who: str) -> bool:
    """Note that somebody squashed a repository's history; False where nothing of ours was ever sent to it."""
    with transaction(url, application="daybook audit", statement_timeout=15) as connection:
        values = {"repository": repository, "who": who}
        return connection.execute(query("audit.squashed"), values).fetchone() is not None


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
    if not row["active"]:
        return f"NOT IN SERVICE – {row['stream']}: {row['service_why']}"
    if not open_ones:
        return f"WELL – {stands}"
    return f"ILL – {stands}: " + "; ".join(each["text"] for each in open_ones)
