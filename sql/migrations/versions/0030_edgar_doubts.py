"""edgar_doubts: a quarter's statement data set that does not come (0030_edgar_doubts.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
