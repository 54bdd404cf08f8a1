"""Freeze, drain, resume, let a file be published: the Airflow DAG `control`, by hand."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, Param

from include.dag_factory import DEFAULTS, START, Priority
from include.operators.control import ControlOperator
from include.registry import sources

DOC = """
# Control

By hand only. **Freeze** lets no new work of a source, stream or job be claimed, **drain** does the same and tells how
many slices still finish, **resume** allows it again. What runs is never stopped, and replay stays possible. A frozen
stream is late at 09:00 all the same, and its item says by whom and why.

**Publish** lets a file pass that a check held back before its commit, once you have looked at why: the alert and
`./run cli publication list` say so. Its scope is a file, its name the path or the number.

What you set wins over `config/controls.yaml`. It holds at once, for every worker, and says who, why and since when
wherever the thing is shown. `./run cli controls` and the Operations API do the same.
"""

with DAG(
    dag_id="control",
    description="Freeze, drain or resume a source, stream or job; let a held file be published",
    schedule=None,
    start_date=START,
    catchup=False,
    params={
        "action": Param(
            "freeze",
            type="string",
            enum=["freeze", "drain", "resume", "publish"],
            title="Action",
            description="Freeze or drain: nothing new is claimed. Resume: it is again. Publish: a held file may go.",
        ),
        "scope": Param(
            "source",
            type="string",
            enum=["source", "stream", "job", "all", "file"],
            title="Of what",
            description="A source, one stream of it, a job (a DAG), or everything; a file to be published.",
        ),
        "name": Param(
            "",
            type=["null", "string"],
            maxLength=200,
            title="Name",
            description="Which one, e.g. finra or finra.short_volume; empty for everything; path or number of a file.",
        ),
        "reason": Param(
            "",
            type=["null", "string"],
            maxLength=500,
            title="Reason",
            description="Why, in your words; it is kept and shown, and needed.",
        ),
    },
    default_args={**DEFAULTS, "execution_timeout": timedelta(minutes=5)},
    doc_md=DOC,
    tags=["system", "kind:control"],
) as dag:
    ControlOperator(task_id="change", sources=sources(), priority_weight=Priority.FIRST)
