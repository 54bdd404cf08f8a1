"""What is wrong with this installation, in words.

Promises: everything is looked at, even if something before it is broken, and each complaint says what to do.
Never: anything is changed.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from include import registry, settings
from include.local import attach, binaries, bootstrap, connections, environment, keys, ports, provision, stack, status
from include.local.failure import LocalFailure
from include.local.rest import Airflow
from include.local.state import Record, State

Say = Callable[[str], None]
GOOD, NOTE, BAD = "ok    ", "note  ", "WRONG "
# A run that nobody starts for longer than this is stuck.
LONGEST_QUEUED = timedelta(minutes=5)


def doctor(say: Say) -> int:
    """Look at everything and say it; 0 when nothing is wrong."""
    wrong: list[str] = []
    for look in (_python, _room, _state, _postgres, _ports, _connections, _stacks):
        for complaint in _complaints(look, say):
            if complaint not in wrong:
                wrong.append(complaint)
                say(f"{BAD}{complaint}")
    say(f"{len(wrong)} things are wrong" if len(wrong) > 1 else f"{'one thing' if wrong else 'nothing'} is wrong")
    return 1 if wrong else 0


def _complaints(look: Callable[[Say], Iterator[str]], say: Say) -> Iterator[str]:
    """What one look finds, up to what stops it from looking further."""
    try:
        yield from look(say)
    except LocalFailure as failure:
        yield str(failure)


def _python(say: Say) -> Iterator[str]:
    version = ".".join(map(str, sys.version_info[:3]))
    if not bootstrap.OLDEST <= sys.version_info[:2] < bootstrap.TOO_NEW:
        yield f"Python {version} is not supported; install one from 3.11 to 3.14 and delete .venv"
    complaint = bootstrap.complaint(settings.ROOT)
    if complaint:
        yield complaint
    else:
        say(f"{GOOD}Python {version}, and .venv holds what requirements.txt asks for")


def _room(say: Say) -> Iterator[str]:
    state = settings.load().state
    place = state if state.exists() else settings.ROOT
    free = shutil.disk_usage(place).free
    if free < 2_000_000_000:
        yield f"only {free / 1e9:.1f} GB are free at {place}; a day of data needs about one"
    elif not os.access(place, os.W_OK):
        yield f"{place} cannot be written to by you"
    else:
        say(f"{GOOD}{free / 1e9:.0f} GB are free at {place}")


def _state(say: Say) -> Iterator[str]:
    directory = settings.load().state
    found = status.stacks(directory)
    for state in found:
        record = state.record()
        if record is not None and record.sessions() and not status.supervised(record):
            yield f"a supervisor of {state.directory} vanished; ./run down ends what it left"
        for name in ("secrets.json", "passwords.json"):
            path = state.directory / name
            if path.exists() and path.stat().st_mode & 0o077:
                yield f"{path} can be read by others; chmod 600 it"
        keys.keys(state.directory)
    say(f"{GOOD}{directory} is ours" if found else f"{GOOD}{directory} is not there yet; ./run up makes it")


def _postgres(say: Say) -> Iterator[str]:
    own = connections.read(settings.ROOT / "config" / "connections.env")
    given = settings.load().database_url or own.get("DATABASE_URL")
    if given:
        say(f"{GOOD}PostgreSQL is the one of DATABASE_URL, at {urlsplit(given).hostname}")
    else:
        say(f"{GOOD}PostgreSQL's programs are at {binaries.find_binaries()}")
    yield from ()


def _ports(say: Say) -> Iterator[str]:
    if status.running(settings.load().state) is None:
        for name, port in (("page", stack.API_PORT), ("PostgreSQL", stack.POSTGRES_PORT)):
            free = ports.is_free(port)
            say(f"{GOOD}port {port} for the {name} is {'free' if free else 'taken; another will be picked'}")
    yield from ()


def _connections(say: Say) -> Iterator[str]:
    file = settings.ROOT / "config" / "connections.env"
    own = connections.read(file)
    if connections.open_to_others(file):
        yield f"{file} can be read by others; chmod 600 it"
    values = environment.base(demo=False, own=own)
    paused = []
    for source in registry.sources():
        name = environment.connection_variable(source.connection)
        text = values.get(name)
        if text is None:
            paused.append(f"{source.name} ({name})")
        elif text.lstrip().startswith("{"):
            try:
                json.loads(text)
            except ValueError as error:
                yield f"{name} is not valid JSON ({error.args[0]})"
    if paused:
        say(
            f"{NOTE}{', '.join(paused)}: paused until they have a connection, and nothing is expected of them; neither "
            f"{file.name} nor the shell sets one"
        )
    if not file.exists():
        say(f"{NOTE}{file} is not there; to make it: install -m 600 config/connections.example.env config/{file.name}")


def _stacks(say: Say) -> Iterator[str]:
    for state in status.stacks(settings.load().state):
        record = state.record()
        for line in status.describe(state, record):
            say(f"      {line}")
        if record is not None and status.supervised(record) and record.phase == "ready":
            yield from _health(state, record, say)


def _health(state: State, record: Record, say: Say) -> Iterator[str]:
    values = attach.environment_of(state, record)
    airflow = Airflow(attach.addresses(state, record).api, "admin", keys.passwords(state.directory)["admin"])
    try:
        health = airflow.health()
        if health is None:
            yield f"the api-server does not answer; its log: {state.logs / 'api-server.log'}"
            return
        for name, part in health.items():
            if part["status"] not in ("healthy", None):
                yield f"{name} is {part['status']}; its log is in {state.logs}"
        yield from dags(airflow, datetime.now(UTC))
        wanted = [source.connection for source in registry.sources()]
        there = provision.connected(airflow, values, wanted)
        for source in registry.sources():
            if source.connection not in there:
                say(f"{NOTE}{source.name} has no connection; see config/connections.example.env")
    finally:
        airflow.close()


def dags(airflow: Airflow, now: datetime) -> Iterator[str]:
    """What is wrong with DAGs: files that cannot be imported, jobs without a DAG, runs that nobody starts.

    Raises:
        LocalFailure: Airflow refused.
    """
    for error in airflow.all("/importErrors", "import_errors"):
        yield f"{error['filename']} cannot be imported: {str(error['stack_trace']).strip().splitlines()[-1]}"
    there = {dag["dag_id"]: dag["is_paused"] for dag in airflow.all("/dags", "dags")}
    lacking = sorted({stream.job_name for stream in registry.streams()} - set(there))
    if lacking:
        yield f"Airflow has no DAG {', '.join(lacking)}; see the dag-processor's log"
    at_work = {run["dag_id"] for run in airflow.all("/dags/~/dagRuns", "dag_runs", params={"state": ["running"]})}
    for run in airflow.all("/dags/~/dagRuns", "dag_runs", params={"state": ["queued"]}):
        since = datetime.fromisoformat(run["queued_at"])
        if now - since > LONGEST_QUEUED and run["dag_id"] not in at_work:
            why = "its DAG is paused" if there.get(run["dag_id"]) else "see the scheduler's log"
            yield f"a run of {run['dag_id']} is queued since {since:%Y-%m-%d %H:%M} UTC: {why}"
