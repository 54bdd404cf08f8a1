"""Who may do what: the one door through which every request goes, before anything of it is read.

Promises: without an Airflow user there is no answer, not even that a path does not exist, but for the routes that say
that they are public, which a setting closes and a limit guards; a route says beside itself who may use it, and one that
says nothing is refused to everybody; a write needs the right to start the DAG `control`, which does the same, and is
refused where a page of another site may have sent it. Never: a login is issued, kept or logged here, and no role is
invented: Airflow's auth manager decides.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import bearer_scheme, get_user
from fastapi import HTTPException, Request
from starlette.concurrency import run_in_threadpool
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send

from include.ops.api.problems import answer

# Names of the routes that may be read without a login. Nothing is public but what stands here.
PUBLIC_READS = frozenset({"recent_disclosures", "list_disclosures", "read_disclosure", "read_company"})
# The header that carries the key of the admin routes.
ADMIN_KEY = "x-admin-key"

# Whoever may start this DAG may do here what it does.
CONTROL_DAG = "control"
# A body is a few words; nobody needs more than this, in bytes.
LONGEST_BODY = 64 * 1024

_READS, _WRITES, _PUBLIC, _SIGNED_IN, _KEYED = "reads", "writes", "public", "signed_in", "keyed"
_SAFE = ("GET", "HEAD")

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


def reads(endpoint: Endpoint) -> Endpoint:
    """Declare that a route only reads: for every Airflow user who may see DAG runs."""
    endpoint.__dict__["daybook_access"] = _READS
    return endpoint


def writes(endpoint: Endpoint) -> Endpoint:
    """Declare that a route changes something: for those who may start the DAG `control`."""
    endpoint.__dict__["daybook_access"] = _WRITES
    return endpoint


def public(endpoint: Endpoint) -> Endpoint:
    """Declare that a route only reads what anybody may; it must stand in `PUBLIC_READS` too."""
    endpoint.__dict__["daybook_access"] = _PUBLIC
    return endpoint


def signed_in(endpoint: Endpoint) -> Endpoint:
    """Declare that a route is for every Airflow user, and of what it changes only for that user."""
    endpoint.__dict__["daybook_access"] = _SIGNED_IN
    return endpoint


def keyed(endpoint: Endpoint) -> Endpoint:
    """Declare that a route is for who brings the admin key, and needs no Airflow user."""
    endpoint.__dict__["daybook_access"] = _KEYED
    return endpoint


def declared(endpoint: object) -> str | None:
    """Return what a route declares (`reads`, `writes`, `public` …); None where it declares nothing and is refused."""
    return getattr(endpoint, "daybook_access", None)


def who(request: Request) -> str:
    """Return the name of the user, for the rows that keep who did something."""
    return str(request.state.daybook_user.get_name())


class Door:
    """The middleware that lets a request in or answers why not."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer with the problem; other protocols than HTTP are not served."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        request = Request(scope)
        try:
            await _admit(request, _route(scope["app"].routes, scope))
        except HTTPException as refused:
            await answer(refused.status_code, str(refused.detail), headers=refused.headers)(scope, receive, send)
            return
        await self.app(scope, receive, send)


def _route(routes: Sequence[BaseRoute], scope: Scope) -> BaseRoute | None:
    """Return the route that will answer; one that fits but for the method where no other does."""
    partly = None
    for route in routes:
        match, _ = route.matches(scope)
        if match is Match.FULL:
            return route
        if match is Match.PARTIAL and partly is None:
            partly = route
    return partly


async def _admit(request: Request, route: BaseRoute | None) -> None:
    endpoint = getattr(route, "endpoint", None)
    access = declared(endpoint)
    is_read = request.method in _SAFE
    answers = route is not None and request.method in (getattr(route, "methods", None) or ())
    if answers and access == _KEYED:
        _check_key(request)
        _plain_json(request)
        return
    if answers and is_read and access == _PUBLIC and getattr(route, "name", "") in PUBLIC_READS:
        _limit(request)
        _said_once(request)
        if request.app.state.serving.is_public:
            return
    bearer = await bearer_scheme(request)
    user = await get_user(request, None, bearer)
    request.state.daybook_user = user
    _said_once(request)
    if not answers:
        # Nothing answers this; the user is told so.
        return
    if access is None or (access in (_READS, _PUBLIC) and not is_read):
        raise HTTPException(403, "This route does not say who may use it, so nobody may. That is a fault of Daybook.")
    if access in (_PUBLIC, _SIGNED_IN):
        if not is_read:
            _same_site(request, has_bearer=bearer is not None)
        return
    if access == _READS:
        is_allowed = await _may(user, "GET", DagDetails())
        if not is_allowed:
            raise HTTPException(403, "You may not see DAG runs, so you may not see this. Ask an Airflow admin.")
        return
    _same_site(request, has_bearer=bearer is not None)
    if not await _may(user, "POST", DagDetails(id=CONTROL_DAG)):
        raise HTTPException(
            403,
            f"Changing this needs the right to start the DAG {CONTROL_DAG}, which you do not have. Nothing was done.",
        )
    _plain_json(request)


def _check_key(request: Request) -> None:
    """Refuse who does not bring the admin key; how long that takes says nothing of how much of it was right."""
    wanted, given = request.app.state.serving.admin_key, request.headers.get(ADMIN_KEY, "")
    _limit(request)
    if not wanted:
        raise HTTPException(401, "No admin key is set here (DAYBOOK_ADMIN_KEY), so nobody is let in by one.")
    if not hmac.compare_digest(hashlib.sha256(given.encode()).digest(), hashlib.sha256(wanted.encode()).digest()):
        raise HTTPException(401, "This needs the admin key, as the header X-Admin-Key. Nothing was done.")


def _limit(request: Request) -> None:
    address = request.client.host if request.client else "nobody"
    wait = request.app.state.limiter.wait(address)
    if wait:
        raise HTTPException(
            429,
            "Too many requests from this address; ask again after the time that Retry-After says.",
            headers={"Retry-After": str(math.ceil(wait))},
        )


async def _may(user: Any, method: Any, details: DagDetails) -> bool:
    def ask() -> bool:
        return bool(
            get_auth_manager().is_authorized_dag(
                method=method, access_entity=DagAccessEntity.RUN, details=details, user=user
            )
        )

    return await run_in_threadpool(ask)


def _said_once(request: Request) -> None:
    """Refuse a parameter that is given twice: one of the two would be ignored, and nobody said which."""
    names = [name for name, _ in request.query_params.multi_items()]
    for name in names:
        if names.count(name) > 1:
            raise HTTPException(422, f"The parameter {name[:50]!r} is given more than once; give it once.")


def _same_site(request: Request, *, has_bearer: bool) -> None:
    """Refuse what a page of another site may have sent with the user's own cookie.

    A browser says in `Sec-Fetch-Site` and `Origin` where a request comes from, and no page can change that. A request
    that says neither comes from no page, and then it must bring its token itself.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    is_own = origin is not None and urlsplit(origin).netloc == request.headers.get("host")
    is_strange = site not in (None, "same-origin", "none") or (origin is not None and not is_own)
    if is_strange or not (has_bearer or site == "same-origin" or (site is None and is_own)):
        raise HTTPException(
            403,
            "This change was asked for by another site's page, or with nothing but a cookie. Nothing was done. Use "
            "Airflow's own pages, or send the token as `Authorization: Bearer`.",
        )


def _plain_json(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "What is to be changed is sent as application/json. Nothing was done.")
    length = request.headers.get("content-length", "")
    if not length.isdigit():
        raise HTTPException(411, "Say how long the body is (Content-Length). Nothing was done.")
    if int(length) > LONGEST_BODY:
        raise HTTPException(413, f"The body is longer than {LONGEST_BODY:,} bytes. Nothing was done.")
