"""Errors as problem+json (RFC 9457): what happened, in words, and what to do.

Promises: every error of the API has this one form, and says whether anything was done. Never: what was sent is
repeated, and no statement, address or trace of the program gets out; the log has those.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import psycopg
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from include.engine.alerts import AlertRefused
from include.engine.controls import ControlRefused
from include.engine.quarantine import QuarantineRefused
from include.engine.silences import SilenceRefused
from include.registry import UnknownName

MEDIA_TYPE = "application/problem+json"

log = logging.getLogger(__name__)


class Fault(BaseModel):
    """One thing that is wrong with a request."""

    where: str = Field(description="The parameter or the place in the body.")
    what: str = Field(description="What is wrong with it.")


class Problem(BaseModel):
    """Why there is no answer, as RFC 9457 has it."""

    type: str = Field(description="Kind of the problem; `about:blank`: the status says it.")
    title: str = Field(description="The status in words.")
    status: int = Field(description="HTTP status.")
    detail: str = Field(description="What happened, and what to do.")
    errors: list[Fault] = Field(default=[], description="What is wrong with the request, where that is the problem.")


class Busy(Exception):
    """The warehouse has no time for one more question now."""


class NotThere(Exception):
    """What was asked for by name does not exist; the text says so."""


class BadCursor(Exception):
    """A cursor that this API did not give out, or gave out for another question."""


def answer(
    status: int, detail: str, *, faults: list[dict[str, str]] | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """Return the answer of a problem."""
    content: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "errors": faults or [],
    }
    return JSONResponse(content, status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Make every error of an app a problem."""

    @app.exception_handler(HTTPException)
    async def plain(request: Request, error: HTTPException) -> Response:
        words = str(error.detail)
        if error.status_code == 404 and words == "Not Found":
            words = "There is nothing at this address. /daybook/v1/openapi.json lists what there is."
        elif error.status_code == 405 and words == "Method Not Allowed":
            words = "This address does not know that method. /daybook/v1/openapi.json says which it knows."
        return answer(error.status_code, words, headers=error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        faults = [
            {"where": ".".join(str(part) for part in each["loc"]), "what": str(each["msg"])}
            for each in error.errors()[:20]
        ]
        return answer(422, "The request is not one that can be answered; `errors` says why.", faults=faults)

    @app.exception_handler(BadCursor)
    async def cursor(request: Request, error: BadCursor) -> Response:
        words = (
            "The cursor is not one of this list. Take `nextCursor` of its last page as it is, with the same filters."
        )
        return answer(400, words)

    @app.exception_handler(NotThere)
    async def missing(request: Request, error: NotThere) -> Response:
        return answer(404, str(error))

    async def refused(request: Request, error: Exception) -> Response:
        return answer(409, str(error))

    for kind in (AlertRefused, ControlRefused, QuarantineRefused, SilenceRefused):
        app.add_exception_handler(kind, refused)

    @app.exception_handler(UnknownName)
    async def unknown(request: Request, error: UnknownName) -> Response:
        return answer(404, str(error))

    async def away(request: Request, error: Exception) -> Response:
        log.warning("The warehouse gave no answer: %s", type(error).__name__)
        words = (
            "The warehouse gives no answer now, or not in time. Try again in some seconds; `./run status` looks at it."
        )
        return answer(503, words, headers={"Retry-After": "10"})

    app.add_exception_handler(Busy, away)
    app.add_exception_handler(psycopg.OperationalError, away)

    @app.exception_handler(Exception)
    async def unforeseen(request: Request, error: Exception) -> Response:
        # Starlette raises it again after this, so that the server's log has all of it.
        return answer(500, "Something failed that nobody foresaw. The log of the api-server has it; report it.")
