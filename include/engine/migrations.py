"""Bringing the warehouse database to the newest schema.

Promises: safe with several starters at once (a transaction-scoped advisory lock lets one migrate and the others
find it done), all or nothing, and it says what it did. Never: nothing is dropped, and an unknown newer schema is
left alone with a sentence.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command, op
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError

from include.engine.db import query, sqlalchemy_url
from include.settings import ROOT

MIGRATIONS = ROOT / "sql" / "migrations"


class MigrationRefused(Exception):
    """The database was made by a newer release; the text says what to do."""


def run_sql_beside(python_file: str) -> None:
    """Run the SQL file with the same name as a revision, as it stands and in the migration's transaction."""
    statements = Path(python_file).with_suffix(".sql").read_text(encoding="utf-8")
    # The driver's own cursor: the files hold many statements and literal per cents and colons.
    cursor = op.get_bind().connection.cursor()
    cursor.execute(statements)
    cursor.close()


def migrate(url: str) -> list[str]:
    """Run every migration that is missing, in one transaction.

    Args:
        url: libpq address of the warehouse database.

    Returns:
        The revisions that were run, oldest first; empty when the schema was up to date.

    Raises:
        MigrationRefused: the database holds a revision that this release does not know.
        psycopg.Error: the warehouse does not answer, or not in time, or refuses a statement.
    """
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", str(MIGRATIONS / "versions").replace("%", "%%"))
    scripts = ScriptDirectory.from_config(config)
    known = [script.revision for script in reversed(list(scripts.walk_revisions()))]
    engine = create_engine(
        sqlalchemy_url(url),
        isolation_level="READ COMMITTED",
        # Another starter may be migrating: waiting for it is fine, for minutes, but not for ever.
        connect_args={"connect_timeout": 5, "options": "-c lock_timeout=300000 -c statement_timeout=600000"},
    )
    try:
        with engine.begin() as connection:
            connection.execute(text(query("migrations.lock")))
            context = MigrationContext.configure(connection, opts={"version_table": "schema_version"})
            current = context.get_current_revision()
            if current is not None and current not in known:
                raise MigrationRefused(
                    f"The database is at schema {current}, which this release (newest {known[-1]}) does not know. "
                    "Nothing was changed. Start the release that made it, or point to another database."
                )
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            return known[known.index(current) + 1 :] if current else known
    except DBAPIError as error:
        # What the driver said: whoever runs this speaks of the warehouse as every other part does.
        if error.orig is None:
            raise
        raise error.orig from None
    finally:
        engine.dispose()
