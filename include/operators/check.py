"""The first task of every collecting run: reads the request, refuses what cannot be, and writes the run down.

Promises: a bad parameter, a missing connection or key ends the run here, in words, without a retry and before any
request. A backfill or replay is planned here, so that the lanes only work. Never: nothing is asked of an upstream,
and a dry run writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from include import settings
from include.contract import Mode
from include.operators import declared, notes, request
from include.operators.endings import WORDS_LENGTH, Interrupted, refuse
from include.operators.request import Form

if TYPE_CHECKING:
    from include.engine.jobs import JobRequest


class CheckRequestOperator(BaseOperator):
    """Checks the request of a run and returns the lanes that work it: none for a poll."""

    template_fields = ("outcome",)
    overwrite_rtif_after_execution = True
    ui_color = "#f4ecd8"

    def __init__(self, *, source: str, streams: tuple[str, ...], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.source = source
        self.streams = streams
        self.outcome = ""

    def execute(self, context: Any) -> list[int]:
        """Check, plan, and return the numbers of the lanes."""
        import psycopg

        from include.engine.jobs import JobRefused
        from include.engine.schema import SchemaTooOld
        from include.operators.resolve import ConnectionUnfit

        try:
            return self._check(context)
        except (request.RequestRefused, JobRefused, ConnectionUnfit, SchemaTooOld, settings.SettingError) as refused:
            self.outcome = f"REFUSED – {refused}"
            notes.task(context, self.outcome)
            notes.run(context, self.outcome)
            refuse(str(refused))
        except psycopg.OperationalError as error:
            first = str(error).partition("\n")[0][:300]
            raise Interrupted(f"INTERRUPTED – the warehouse does not answer: {first}") from None

    def _check(self, context: Mapping[str, Any]) -> list[int]:
        from include.engine import schema
        from include.operators import resolve

        dag_run = context["dag_run"]
        streams = [declared.stream(name) for name in self.streams]
        window = dag_run.logical_date if dag_run.run_type == "backfill" else None
        form = request.read(context["params"], dag_run.conf or {}, streams, window=window)
        url = resolve.warehouse_url()
        schema.check(url)
        if form.mode is not Mode.REPLAY:
            resolve.credentials(declared.source(self.source))
        job = job_of(url, form, context)
        if form.dry_run:
            return self._dry_run(url, form, job, context)
        words, lanes, is_over = start(url, form, job)
        self._tell(context, form, job, words, is_over=is_over)
        return lanes

    def _dry_run(self, url: str, form: Form, job: JobRequest | None, context: Mapping[str, Any]) -> list[int]:
        from include.engine import estimate, jobs

        words = " ".join(jobs.dry_run(url, job) if job is not None else estimate.polls(url, form.streams))
        self._tell(context, form, job, words)
        return []

    def _tell(
        self, context: Mapping[str, Any], form: Form, job: JobRequest | None, words: str, *, is_over: bool = False
    ) -> None:
        self.outcome = words
        asked = {
            "mode": str(job.mode if job else form.mode),
            "run_id": job.name if job else None,
            "streams": [stream.name for stream in form.streams],
            "dry_run": form.dry_run,
            "is_over": is_over,
            "replay_into": form.replay_into,
            "words": words[:WORDS_LENGTH],
        }
        context["ti"].xcom_push(key="request", value=asked)
        notes.task(context, words)
        notes.run(context, words)
        self.log.info(words)


def job_of(url: str, form: Form, context: Mapping[str, Any]) -> JobRequest | None:
    """Return the job run that the request comes to; None for a plain poll.

    Raises:
        JobRefused: what is asked for cannot be found out.
    """
    from include.engine import once_more
    from include.engine.jobs import JobRequest, dated

    if form.is_plain_poll:
        return None
    dag_run = context["dag_run"]
    mode, start, end, run_id, force = form.mode, form.start, form.end, form.run_id, form.force
    if form.window is not None or (mode is Mode.POLL and force):
        start, end = once_more.sessions(url, form.streams, form.window)
        mode, force = Mode.BACKFILL, True
    elif mode is Mode.POLL:
        # Asked anew each time, so it is named after the run that asks and not after its content.
        run_id = f"poll.{dag_run.dag_id}.{dag_run.run_id}"
    job = JobRequest(
        mode=mode,
        streams=form.streams,
        start=start,
        end=end,
        keys=form.keys,
        timeframe=form.timeframe,
        run_id=run_id,
        force=force,
        replay_into=form.replay_into,
        reason=form.reason,
        who=str(dag_run.triggering_user_name or dag_run.run_type),
        asking=f"{dag_run.dag_id} {dag_run.run_id}",
    )
    return dated(url, job)


def start(url: str, form: Form, job: JobRequest | None) -> tuple[str, list[int], bool]:
    """Write the run and its chunks; return what became of it, the lanes that work it, and whether it was over."""
    from include.engine import jobs, windows

    # Whoever asks an upstream has shown its connection by now; a replay asks none.
    windows.declare(url, form.streams, is_connected=lambda stream: form.mode is not Mode.REPLAY)
    names = ", ".join(stream.name for stream in form.streams)
    if job is None:
        # Only a window that is cut into parts has something for lanes to do.
        helping = settings.load().lanes if any(stream.making for stream in form.streams) else 0
        return f"POLL – {names}: what is due now", list(range(1, helping + 1)), False
    words = jobs.start(url, job)
    for stream in form.streams:
        jobs.plan(url, job, stream)
    state = jobs.progress(url, job.name)
    words = f"{words} (mode={job.mode}, {names}): {state.words}"
    left = state.open + state.running
    lanes = 0 if job.mode is Mode.POLL else min(settings.load().lanes, left)
    return words, list(range(1, lanes + 1)), left == 0
