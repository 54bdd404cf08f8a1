"""The application that the plugin mounts in Airflow's web server.

Promises: every route goes through the door (`access`), fails in one form (`problems`) and is described in the OpenAPI
document, which needs a login like everything else. Never: anything heavy is loaded, or a connection opened, before the
first request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from fastapi import APIRouter, FastAPI, Request

from include import settings
from include.ops import addresses, paused
from include.ops.api import (
    access,
    admin,
    analyses,
    calendar,
    controls,
    cycles,
    disclosures,
    metrics,
    problems,
    quarantine,
    silences,
    snapshots,
    summary,
    told,
    work,
)
from include.ops.api.front import Limiter, Lru
from include.ops.api.warehouse import Warehouse

PREFIX = "/daybook"
VERSION = "/v1"

DESCRIPTION = """
What Daybook collected, what it came to, and what waits, read from its rows.

**Who.** Every address but `disclosures…` and `companies…`, which are public and limited by address, and `admin…`, which
needs the header `X-Admin-Key`, needs an Airflow user: `Authorization: Bearer` with a token of `POST /auth/token`, or
the cookie of Airflow's pages. Reading needs the right to see DAG runs, changing the right to start the DAG `control`.
A change that brings nothing but the cookie must come from Airflow's own pages.

**Times** are ISO 8601 with offset, in Seoul; a `runDate` is a date in Seoul, a `sessionDate` one of the market's own
calendar. **Lists** come in pages: pass `nextCursor` back as `cursor`, with the same filters. **Errors** are
problem+json and say in words what happened and what to do.
"""

_PROBLEM = {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
_ERRORS: dict[int | str, dict[str, Any]] = {
    code: {"description": words, "content": _PROBLEM}
    for code, words in (
        (400, "The cursor is none of this list."),
        (401, "No login, or one that ran out."),
        (403, "Not yours to do, or asked for by another site's page."),
        (422, "The request cannot be answered as it stands; `errors` says why."),
        (503, "The warehouse gives no answer now; try again in some seconds."),
    )
}
_CHANGES: dict[int | str, dict[str, Any]] = {
    code: {"description": words, "content": _PROBLEM}
    for code, words in (
        (404, "Nothing of that name exists."),
        (409, "It cannot be done as things stand; the detail says why and what would do."),
        (411, "The length of the body is missing."),
        (413, "The body is too long."),
        (415, "The body is not application/json."),
    )
}


_LIMITED: dict[int | str, dict[str, Any]] = {
    429: {"description": "Too often, or the day's quota is used; Retry-After says until when.", "content": _PROBLEM}
}
_KEPT: dict[int | str, dict[str, Any]] = {304: {"description": "What you have is still right (If-None-Match)."}}


def create_app(
    warehouse: Callable[[], str] | None = None,
    paused_dags: Callable[[], Sequence[paused.Paused]] | None = None,
    serving: settings.Serving | None = None,
    hands: admin.Hands | None = None,
) -> FastAPI:
    """Return an app.

    Args:
        warehouse: gives the address of the warehouse; Airflow's connection `warehouse` where None.
        paused_dags: gives the DAGs that are paused; asks Airflow's own database where None.
        serving: how readers are served; as the settings say where None.
        hands: reach DART and start DAGs for the admin routes; Airflow's own where None.

    Raises:
        SettingError: a setting of the serving cannot be used.
    """
    # Airflow's own paths for documents would need no login, so there are none of them.
    app = FastAPI(
        title="Daybook Operations API",
        version="1",
        description=DESCRIPTION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )
    app.state.warehouse = Warehouse(warehouse or _warehouse)
    app.state.paused_dags = paused_dags or paused.paused_dags
    app.state.serving = serving or settings.serving()
    app.state.limiter = Limiter(app.state.serving.per_minute)
    app.state.analyses = Lru[dict[str, Any]](analyses.MOST_KEPT)
    app.state.revealed = Lru[bool](analyses.MOST_KEPT)
    app.state.hands = hands or admin.Hands()
    app.add_middleware(access.Door)
    problems.install(app)
    for module in (
        summary,
        cycles,
        snapshots,
        work,
        quarantine,
        calendar,
        controls,
        told,
        silences,
        disclosures,
        analyses,
        admin,
        metrics,
    ):
        for route in module.router.routes:
            route.responses = {**_ERRORS, **_of(route), **route.responses}
        app.include_router(module.router, prefix=VERSION)
    app.include_router(_documents(), prefix=VERSION)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


@cache
def mounted() -> FastAPI:
    """Return the one app of this process."""
    return create_app()


def _of(route: Any) -> dict[int | str, dict[str, Any]]:
    kind = access.declared(route.endpoint)
    if kind in ("writes", "keyed"):
        return _CHANGES if kind == "writes" else {**_CHANGES, **_LIMITED}
    if kind == "signed_in":
        return {409: _CHANGES[409], **_LIMITED}
    if kind == "public":
        return {**_LIMITED, **_KEPT, **({404: _CHANGES[404]} if "{" in route.path else {})}
    return {404: _CHANGES[404]} if "{" in route.path else {}


def _documents() -> APIRouter:
    router = APIRouter(tags=["documents"])

    @router.get("/openapi.json", include_in_schema=False)
    @access.reads
    def document(request: Request) -> dict[str, Any]:
        """This API, described."""
        described: dict[str, Any] = request.app.openapi()
        return described

    return router


def _openapi(app: FastAPI) -> dict[str, Any]:
    """Describe the app once: where it is mounted, and the two ways to log in."""
    from fastapi.openapi.utils import get_openapi

    if app.openapi_schema is None:
        described = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        described["servers"] = [{"url": PREFIX, "description": "On Airflow's web server."}]
        problem = problems.Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        described["components"]["schemas"] |= {**problem.pop("$defs"), "Problem": problem}
        described["components"]["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer", "description": "A token of Airflow: POST /auth/token."},
            "cookie": {
                "type": "apiKey",
                "in": "cookie",
                "name": "_token",
                "description": "The login of Airflow's pages.",
            },
        }
        described["security"] = [{"token": []}, {"cookie": []}]
        app.openapi_schema = described
    return app.openapi_schema


def _warehouse() -> str:
    # Imported here: the provider costs every process that loads the plugin about half a second.
    from airflow.providers.postgres.hooks.postgres import PostgresHook

    return addresses.warehouse_url(PostgresHook.get_connection("warehouse"))
