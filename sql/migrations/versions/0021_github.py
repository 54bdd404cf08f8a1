"""github: what is to be said of incidents there, and audits (0021_github.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
