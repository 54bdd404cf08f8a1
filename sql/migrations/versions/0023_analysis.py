"""analysis: the state machine of the disclosure analysis, its slots, results and their history (0023_analysis.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
