"""kind: the companies listed in Korea (0015_kind.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
