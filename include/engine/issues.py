"""What is to be said of incidents on GitHub: rows, before anything is sent.

Promises: an incident has one issue; its row says what is wanted there and which version of that was confirmed, so
whatever was killed or refused is sent later and nothing is sent twice. An issue is opened and brought up to date by an
audit; that its incident is over is wanted as soon as anybody looks. Never: nothing is sent from here (see
`include.ops.github`), and what an upstream said calls nobody on GitHub.
"""

from __future__ import annotations

import re
from datetime import datetime

from include.engine.db import Connection, Row, query, transaction
from include.engine.verdict import kst

# What is wrong with the sending itself is no matter for an issue, which could not be sent.
OUTBOX = "outbox/github"
# GitHub takes titles of 256 characters and texts of 65,536.
MOST_TITLE, MOST_WORDS = 250, 25_000


def want(connection: Connection, *, opens: bool) -> int:
    """Note what issues are to say from now on, in the caller's transaction; return how many changed.

    Args:
        connection: inside a transaction.
        opens: whether open incidents get issues and older ones are brought up to date; otherwise only what is over
            is noted.
    """
    changed = 0
    for row in connection.execute(query("issues.unsaid"), {"own": OUTBOX, "opens": opens}).fetchall():
        ends_as = None if row["closed_at"] is None else "not_planned" if row["is_not_mended"] else "completed"
        values = {"incident": row["incident_id"], "title": title(row), "body": body(row), "ends_as": ends_as}
        if (values["title"], values["body"], ends_as) != (row["title"], row["body"], row["ends_as"]):
            connection.execute(query("issues.want"), values)
            changed += 1
    return changed


def note_what_is_over(url: str) -> int:
    """Note that issues of incidents that ended are to be closed; return how many."""
    with transaction(url, application="daybook issues", statement_timeout=15) as connection:
        return want(connection, opens=False)


def waiting(connection: Connection) -> tuple[int, datetime | None, datetime]:
    """Return how many issues wait for GitHub, since when the first does, and the instant now."""
    row = connection.execute(query("issues.waiting")).fetchone()
    assert row is not None
    return row["waiting"], row["since"], row["now"]


def title(row: Row) -> str:
    """Return the title of an incident's issue."""
    return f"[{row['severity']}] {_line(row['incident_key'])}"[:MOST_TITLE]


def body(row: Row) -> str:
    """Return the text of an incident's issue, without its marker.

    Times are to the minute of what does not change from one look to the next, so that an incident that is merely seen
    again is no news.
    """
    lines = [_quoted(row["text"]), "", f"- Severity: {row['severity']}", f"- Since: {kst(row['opened_at'])}"]
    if row["stream"]:
        lines.append(f"- Stream: `{_line(row['stream'])}`")
    lines.append(f"- Incident: `{_line(row['incident_key'])}`, number {row['incident_id']}")
    if row["closed_at"] is not None:
        lines += ["", f"**Over** since {kst(row['closed_at'])}:", "", _quoted(row["closed_text"])]
    else:
        lines += ["", "It is closed by itself when it is over. `./run cli incidents` shows how it stands now."]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """Words of others as words only: in a block of code nobody is called and nothing is linked."""
    kept = text[:MOST_WORDS].replace("\0", "")
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", kept)), default=0))
    return f"{fence}text\n{kept}\n{fence}"


def _line(text: str) -> str:
    return re.sub(r"[\s`]+", " ", text)
