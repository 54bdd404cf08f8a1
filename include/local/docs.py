"""`./run docs`: makes the pages of `docs/` that follow from the declarations.

Promises: a PostgreSQL of its own is started for it and removed again, and what an installation sets in the
environment is left out, so that everybody makes the same pages. Never: a running stack is looked at.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from include import settings
from include.declared_settings import SETTINGS
from include.engine.migrations import migrate
from include.local.postgres import Cluster


def docs() -> int:
    """Make the pages and return the exit code.

    Raises:
        LocalFailure: PostgreSQL does not start.
    """
    # A server started by root runs as another user, who has to be able to pass through.
    home = Path(tempfile.mkdtemp(prefix="daybook-docs-"))
    home.chmod(0o711)
    cluster = Cluster(home / "postgres")
    try:
        cluster.start()
        url = cluster.create_database("docs")
        migrate(url)
        environment = {
            name: value
            for name, value in settings.environment(
                AIRFLOW_HOME=str(settings.ROOT),
                AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{home / 'airflow.db'}",
                AIRFLOW__LOGGING__BASE_LOG_FOLDER=str(home / "logs"),
            ).items()
            if name not in {setting.name for setting in SETTINGS}
        }
        command = [sys.executable, "-m", "include.docs", url]
        return subprocess.run(command, cwd=settings.ROOT, env=environment, check=False).returncode
    finally:
        cluster.remove()
        shutil.rmtree(home, ignore_errors=True)
