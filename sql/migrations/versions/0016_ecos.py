"""ecos: Korean economic series (0016_ecos.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
