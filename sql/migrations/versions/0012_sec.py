"""sec: what is filed with the SEC and who is listed where (0012_sec.sql)."""

from include.engine.migrations import run_sql_beside

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    run_sql_beside(__file__)
