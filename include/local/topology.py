"""The distributed stack on one machine: Redis, two Celery workers and, for a demo, a server that speaks S3.

    python -m include.local.topology NAME …      waits until the workers of these names answer

Promises: what docker-compose.yaml describes runs without containers, on loopback, by the same commands; what is missing
is told before anything is started. Never: a secret stands on a command line, and real answers are kept in memory alone.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from include import settings
from include.local import bootstrap
from include.local.failure import LocalFailure
from include.local.files import write_private
from include.local.keys import Keys
from include.local.ports import LOOPBACK

Executor = Literal["local", "celery"]
WORKERS, MOST_WORKERS = 2, 8
REQUIREMENTS = "requirements-celery-up.txt"
REDIS_PORT, S3_PORT = 6380, 7070
WORKERS_SECONDS = 240.0


def check() -> None:
    """Make sure that this machine has what the distributed stack needs; its packages are installed where missing.

    Raises:
        LocalFailure: something is missing that cannot be installed from here; nothing was started.
    """
    if shutil.which("redis-server") is None:
        raise LocalFailure(
            "There is no redis-server on this machine, and Celery's workers are given their work by one. Nothing was "
            "started. Install it (Debian, Ubuntu: apt install redis-server; macOS: brew install redis), or leave out "
            "--executor celery."
        )
    try:
        bootstrap.add(settings.ROOT, REQUIREMENTS)
    except bootstrap.CannotMake as reason:
        raise LocalFailure(f"{reason} Nothing was started.") from reason


def write_redis(folder: Path, port: int, keys: Keys) -> Path:
    """Write how Redis runs into a file for its owner alone, as its password stands in it, and return the file.

    What waits is written down once a second: a Redis that is started again has its queue.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / "redis.conf"
    lines = (
        f"bind {LOOPBACK}", f"port {port}", f"requirepass {keys.redis}", f'dir "{folder}"',
        "appendonly yes", "appendfsync everysec", 'save ""', "daemonize no",
    )  # fmt: skip
    write_private(file, "\n".join(lines) + "\n")
    return file


def names(workers: int) -> tuple[str, ...]:
    """Return what so many workers are called."""
    return tuple(f"worker-{number}" for number in range(1, workers + 1))


def worker(name: str, folder: Path) -> tuple[str, ...]:
    """Return the module and arguments of one worker; its log is the supervisor's, so it serves none."""
    return (
        "airflow", "celery", "worker", "--celery-hostname", f"{name}@{LOOPBACK}",
        "--pid", str(folder / f"{name}.pid"), "--skip-serve-logs",
    )  # fmt: skip


def celery_environment(
    metadata: str, redis_port: int, s3_port: int | None, keys: Keys, concurrency: int
) -> dict[str, str]:
    """Return what turns the environment of a stack into that of a distributed one, as docker-compose.yaml does.

    Args:
        metadata: SQLAlchemy's address of Airflow's database.
        redis_port: where Redis listens.
        s3_port: where the demo's object store listens; None leaves the stores where the settings have them.
        keys: the installation's secrets.
        concurrency: how many tasks a worker runs at once.
    """
    values = {
        "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
        "AIRFLOW__CELERY__BROKER_URL": f"redis://:{keys.redis}@{LOOPBACK}:{redis_port}/0",
        "AIRFLOW__CELERY__RESULT_BACKEND": f"db+{metadata}",
        "AIRFLOW__CELERY__WORKER_CONCURRENCY": str(concurrency),
        "AIRFLOW__CELERY_BROKER_TRANSPORT_OPTIONS__VISIBILITY_TIMEOUT": "3600",
    }
    if s3_port is not None:
        values.update(
            DAYBOOK_RAW_ROOT="s3://daybook/raw",
            DAYBOOK_OUTBOX_ROOT="s3://daybook/outbox",
            DAYBOOK_FILES_ROOT="s3://daybook/files",
            AWS_ACCESS_KEY_ID="sandbox",
            AWS_SECRET_ACCESS_KEY=keys.redis,
            AWS_ENDPOINT_URL=f"http://{LOOPBACK}:{s3_port}",
            AWS_DEFAULT_REGION="us-east-1",
        )
    return values


def wait_for_workers(values: Mapping[str, str], names: Sequence[str], seconds: float = WORKERS_SECONDS) -> list[str]:
    """Ask the workers until all of these names answer; return those that did not within `seconds`.

    Args:
        values: an environment that names the broker.
        names: the workers' names, without their host.
        seconds: how long to ask.
    """
    from celery import Celery

    control = Celery(broker=values["AIRFLOW__CELERY__BROKER_URL"]).control
    end = time.monotonic() + seconds
    while True:
        # One round of asking takes its two seconds, whoever answers.
        there = {name.partition("@")[0] for answer in control.ping(timeout=2) for name in answer}
        silent = [name for name in names if name not in there]
        if not silent or time.monotonic() > end:
            return silent


if __name__ == "__main__":
    late = wait_for_workers(settings.environment(), sys.argv[1:])
    sys.exit(f"{', '.join(late)} did not answer within {WORKERS_SECONDS:.0f} s" if late else 0)
