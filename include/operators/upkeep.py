"""The task that looks after what nobody else does, and the one that starts the runs it asks for.

Promises: the gate is looked at before leases of vanished holders are ended; a snapshot that nobody took is marked, one
that is prepared expects also what came into service since, what is past due or lags is told, and alerts are sent;
windows that nobody works on get a run, and so does publication that lags. A DAG gets at most one such run in a quarter
of an hour, a paused one none, and is noted as paused. Each look leaves a sign of life. Never: nothing is collected or
published here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import DagRunTriggerException

from include.contract import Source, Stream, Table
from include.operators import declared, notes
from include.operators.endings import Interrupted
from include.operators.prebuild import PREBUILD

# How long a window may wait, and a change go unpublished, before upkeep steps in.
WINDOW_GRACE, PUBLISH_GRACE = timedelta(minutes=5), timedelta(minutes=10)
PUBLISH = "publish"
# How long a look may go on sending issues.
ISSUE_SECONDS = 20.0


class UpkeepOperator(BaseOperator):
    """Recovers leases and returns the runs that should be started."""

    template_fields = ("outcome",)
    overwrite_rtif_after_execution = True
    ui_color = "#f4ecd8"

    def __init__(self, *, sources: Sequence[Source], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        for source in sources:
            declared.declare(source)
        self.sources = tuple(source.name for source in sources)
        self.outcome = ""

    def execute(self, context: Any) -> list[dict[str, Any]]:
        """Look after everything once, and return the runs to start."""
        import psycopg

        from include.operators import resolve, telling
        from include.operators.resolve import ConnectionUnfit

        try:
            url = resolve.warehouse_url()
            told, orders = self._look(url, context)
        except (psycopg.OperationalError, ConnectionUnfit) as error:
            raise Interrupted(f"INTERRUPTED – {str(error).partition(chr(10))[0][:300]}") from None
        told += [f"{order['dag_id']} is started: {order['why']}" for order in orders]
        sent = telling.send(url, f"upkeep of {context['ti'].run_id}")
        told += [sent] if sent else []
        # What GitHub did not take at the audit, and that something is over; few at once, as upkeep has more to do.
        issues = telling.send_issues(url, f"upkeep of {context['ti'].run_id}", seconds=ISSUE_SECONDS)
        told += [issues] if issues else []
        self.outcome = f"LOOKED AFTER – {'; '.join(told)}" if told else "NOTHING TO DO – all is looked after."
        if told:
            notes.run(context, self.outcome)
        self.log.info(self.outcome)
        return orders

    def _look(self, url: str, context: Mapping[str, Any]) -> tuple[list[str], list[dict[str, Any]]]:
        from include.engine import dispatch, lookout, upkeep
        from include.outputs import publisher, releases

        # First of all, so that whatever else fails today, the watcher knows that the scheduler runs.
        lookout.show_life(url)
        told = upkeep.recover(url)
        sources = [declared.source(name) for name in self.sources]
        streams = [stream for source in sources for stream in source.streams]
        ti, quarter = context["ti"], _quarter(context)
        jobs = sorted({stream.job_name for stream in streams} | {lookout.DISPATCH, PUBLISH, PREBUILD})
        paused = {job: ti.get_dag(job).is_paused for job in jobs}
        lookout.note_paused(url, paused)
        late = dispatch.complete(url, streams, f"upkeep of {ti.run_id}")
        told += [late] if late else []
        told += lookout.look(url, streams)
        wanted = _unattended(url, streams)
        tables: list[Table] = [table for stream in streams for table in stream.tables]
        fed = releases.feeding(tables)
        since = upkeep.publication_behind(url, fed, publisher.LEASE, PUBLISH_GRACE)
        if since is not None:
            wanted.append((PUBLISH, "something waits to be published", {}))
        told += _write_journal(url)
        orders = []
        for dag_id, why, conf in wanted:
            if ti.get_dag(dag_id).is_paused:
                told.append(f"{dag_id} is paused ({why})")
            else:
                orders.append({"dag_id": dag_id, "run_id": f"upkeep__{quarter}", "conf": conf, "why": why})
        return told, orders


def _write_journal(url: str) -> list[str]:
    """Write down beside the raw objects what was asked since; say so only where it cannot be."""
    from include import settings
    from include.engine import journal
    from include.engine.raw import RawStore

    try:
        journal.write(url, RawStore(settings.load().raw_root))
    except OSError as error:
        return [f"the journal beside the raw objects cannot be written ({error}); the next look writes what is missing"]
    return []


def _unattended(url: str, streams: Sequence[Stream]) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the DAGs that need a run, why, and for which of their streams."""
    from include.engine import windows

    found: dict[str, dict[str, str]] = {}
    for stream in streams:
        unattended = windows.unattended(url, stream, WINDOW_GRACE)
        if unattended is not None:
            found.setdefault(stream.job_name, {})[stream.name] = unattended.why
    return [
        (dag_id, "; ".join(f"{name}: {why}" for name, why in each.items()), {"streams": list(each)})
        for dag_id, each in found.items()
    ]


def _quarter(context: Mapping[str, Any]) -> str:
    at = context["dag_run"].run_after
    return str(at.replace(minute=at.minute // 15 * 15, second=0, microsecond=0).strftime("%Y-%m-%dT%H:%M"))


class StartRunOperator(BaseOperator):
    """Starts one run of another DAG; one of that name that is there already is left alone."""

    def __init__(self, *, order: Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.order = order

    def execute(self, context: Any) -> None:
        """Ask Airflow for the run.

        Raises:
            DagRunTriggerException: always; it is how a task asks.
        """
        order = self.order
        context["started"] = order["dag_id"]
        self.log.info("%s is started: %s", order["dag_id"], order["why"])
        raise DagRunTriggerException(
            trigger_dag_id=order["dag_id"],
            dag_run_id=order["run_id"],
            conf=dict(order["conf"]),
            reset_dag_run=False,
            skip_when_already_exists=True,
            wait_for_completion=False,
            allowed_states=[],
            failed_states=[],
            poke_interval=60,
            deferrable=False,
            note=f"STARTED BY UPKEEP – {order['why']}"[:1000],
        )
