"""snapshot: the 09:00 gate and its verdict, dispatch, controls, the delta's facts (0005_snapshot.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
