"""alerts: incidents that open and close by themselves, silences, signs of life (0006_alerts.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
