"""publish: files and commits (0003_publish.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
