"""sec: submissions, their documents, headers and XBRL (0013_sec_filings.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
