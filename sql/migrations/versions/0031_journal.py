"""journal: what only the database knows is also written beside the raw objects (0031_journal.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
