"""Whether the warehouse's schema is one that this release can work on.

Promises: a schema that is too old is said in words before anything is claimed, asked or written. A newer one is no
hindrance: migrations only add, so the release before goes on until it is stopped. Never: anything is migrated here.
"""

from __future__ import annotations

from include.engine.db import query, transaction
from include.version import OLDEST_SCHEMA, VERSION


class SchemaTooOld(Exception):
    """The warehouse has no schema of ours, or an older one than this release works on; the text says what to do."""


def check(url: str) -> str:
    """Return the revision of the warehouse's schema.

    Args:
        url: libpq address of the warehouse.

    Raises:
        SchemaTooOld: this release cannot work on it; nothing was done.
        psycopg.OperationalError: the warehouse does not answer.
    """
    with transaction(url, application="daybook schema") as connection:
        row = connection.execute(query("migrations.has_schema")).fetchone()
        there = row is not None and row["found"]
        found = connection.execute(query("migrations.revision")).fetchone() if there else None
    if found is None:
        raise SchemaTooOld(
            f"The warehouse has no tables of Daybook yet, so nothing was done. {_remedy()} If there should be some, "
            "the address leads to another database."
        )
    revision = str(found["revision"])
    # Revisions are numbers of four digits.
    if revision < OLDEST_SCHEMA:
        raise SchemaTooOld(
            f"The warehouse is at schema {revision}; Daybook {VERSION} needs {OLDEST_SCHEMA} or newer, so nothing was "
            f"done and nothing is lost. {_remedy()}"
        )
    return revision


def _remedy() -> str:
    return "Migrate it: ./run up does, or ./run cli migrate; docs/upgrade.md has the order."
