"""The pages of DAGs and streams: what runs when, and what each stream asks, keeps and may spend.

Promises: DAGs are those that the files in `dags/` define. Never: a connection is opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from include.contract import Source, Stream
from include.docs.text import page, table
from include.operators.hours import schedule_words


def dags(folder: Path) -> str:
    """Return the page of all DAGs.

    Args:
        folder: the folder of DAG files.
    """
    rows = []
    for dag, file in sorted(_defined(folder), key=lambda each: each[0].dag_id):
        when = _when(dag)
        pools = sorted({task.pool for task in dag.tasks if task.pool != "default_pool"})
        rows.append((f"`{dag.dag_id}`", dag.description or "", when, f"`dags/{file}`", ", ".join(pools) or "–"))
    intro = [
        "Each DAG has a page of its own in Airflow, with what to do when it is red. Times as declared; "
        "`config/schedules.yaml` sets others.",
    ]
    return page("DAGs", intro, table(("DAG", "what it does", "when", "file", "pools"), rows))


def _defined(folder: Path) -> list[tuple[Any, str]]:
    from airflow.sdk import DAG

    found: dict[str, tuple[Any, str]] = {}
    for file in sorted(folder.glob("*.py")):
        spec = spec_from_file_location(f"daybook_dag_{file.stem}", file)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        for value in vars(module).values():
            if isinstance(value, DAG):
                found[value.dag_id] = (value, file.name)
    return list(found.values())


def _when(dag: Any) -> str:
    """Say when a DAG runs: as its page does; by hand where that says nothing."""
    for paragraph in (dag.doc_md or "").split("\n\n"):
        if paragraph.startswith("**When.**"):
            return " ".join(paragraph.removeprefix("**When.**").split()).split(". ")[0].rstrip(".")
    return "by hand"


def streams(sources: Sequence[Source]) -> str:
    """Return the page of all streams, as they are declared."""
    parts = []
    for source in sources:
        reach = "no key" if not source.needs_key else "a key"
        contact = ", with an e-mail address in `extra.user_agent`" if source.needs_contact else ""
        parts.append(
            [
                f"## {source.title}",
                "",
                f"Connection `{source.connection}` ({reach}{contact}); hosts {', '.join(source.hosts)}. {source.terms}",
            ]
        )
        for stream in source.streams:
            parts.append([f"### `{stream.name}`", "", f"{stream.title}.", "", *table(("", ""), _facts(stream))])
    return page("Streams", *parts)


def _facts(stream: Stream) -> list[tuple[str, str]]:
    schedule, budget, group = stream.schedule, stream.budget, stream.host_group
    tables = ", ".join(f"`{each.qualified}`" for each in stream.tables) or "none: it makes files"
    quota = f"; {group.quota.requests:,} requests a day and key" if group.quota else ""
    facts = [
        ("DAG", f"`{stream.job_name}`"),
        ("When", schedule_words(schedule)),
        ("Due", f"{_span(schedule.allowance)} after that"),
        ("Not published yet", f"asked again after {_span(schedule.retry_first)}, every {_span(schedule.retry_every)}, "
         f"until {_span(schedule.last_try)} after"),
        ("Make-up windows", ", ".join(map(_span, schedule.make_up)) or "none: it asks once"),
        ("Calendar", f"{stream.calendar}, since {stream.first_session}"),
        ("Keys", stream.keys_are),
        ("Rate", f"one request in {_span(group.interval)} (host group `{group.name}`){quota}"),
        ("Budget", f"a slice: {budget.slice_list_pages:,} list pages, {budget.slice_items:,} items; a day: "
         f"{budget.day_list_pages:,}, {budget.day_items:,} and {budget.day_details:,} details"
         + (f" ({budget.reason})" if budget.reason else "")),
        ("Tables", tables),
        ("Parser", f"version {stream.parser_version}"),
        ("Listing", f"yes; closed after {stream.close_after} that do not show it" if stream.listing else "no"),
        ("Judged at 09:00", "yes" if stream.sla_eligible else "no"),
        ("Past", stream.snapshot_only or "by backfill"),
    ]  # fmt: skip
    if stream.recheck:
        facts.append(("Read again", f"the last {stream.recheck.sessions} sessions"))
    return facts


def _span(span: timedelta) -> str:
    seconds = span.total_seconds()
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{int(seconds // size)} {unit}"
    minutes, rest = divmod(seconds, 60)
    if minutes >= 60:
        return f"{int(minutes // 60)} h {int(minutes % 60)} min"
    return f"{int(minutes)} min {rest:g} s" if minutes else f"{seconds:g} s"
