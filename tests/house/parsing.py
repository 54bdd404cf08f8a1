"""Starts the parse probe in a fresh process that can reach nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.house.tree import ROOT

NOWHERE = "127.0.0.1:1"
"""An address at which nothing listens."""


def environment(scratch: Path, seed: int, home: Path = ROOT) -> dict[str, str]:
    """The environment of a process that parses: nothing of this one's, no database, no server."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(scratch),
        "TZ": "UTC",
        "PYTHONHASHSEED": str(seed),
        "PYTHONDONTWRITEBYTECODE": "1",
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://{NOWHERE}/execution/",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"postgresql+psycopg2://nobody@{NOWHERE}/nothing",
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(scratch / "logs"),
        "DAYBOOK_STATE": str(scratch / "state"),
    }


def parse(dags: Path, plugins: Path, scratch: Path, seed: int, home: Path = ROOT) -> dict[str, Any]:
    """Parse a folder in a process of its own and return what the probe saw.

    Raises:
        AssertionError: the process did not come to an end in good order; the text is what it said.
    """
    probe = Path(__file__).with_name("parse_probe.py")
    process = subprocess.run(
        [sys.executable, str(probe), str(dags), str(plugins)],
        cwd=scratch,
        env=environment(scratch, seed, home),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert process.returncode == 0, process.stderr[-4000:]
    seen: dict[str, Any] = json.loads(process.stdout.strip().splitlines()[-1])
    return seen
