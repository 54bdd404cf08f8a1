"""Nobody is answered who is not let in, and no route is open by accident."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute

from include.ops.api import access
from tests.ops.conftest import Api

WHY = {"why": "a test"}
TOMORROW = (datetime.now(UTC) + timedelta(days=1)).isoformat()
# Every route, with a request that fits it: what it needs in its path, and a body for a change.
TABLE: dict[tuple[str, str], tuple[str, Any]] = {
    ("GET", "/v1/summary"): ("/summary", None),
    ("GET", "/v1/streams"): ("/streams", None),
    ("GET", "/v1/cycles"): ("/cycles", None),
    ("GET", "/v1/cycles/{cycle_id}"): ("/cycles/1", None),
    ("GET", "/v1/cycles/{cycle_id}/fetches"): ("/cycles/1/fetches", None),
    ("GET", "/v1/runs"): ("/runs", None),
    ("GET", "/v1/slaSnapshot"): ("/slaSnapshot", None),
    ("GET", "/v1/jobRuns"): ("/jobRuns", None),
    ("GET", "/v1/jobRuns/{run_id}"): ("/jobRuns/a-run", None),
    ("GET", "/v1/pending"): ("/pending", None),
    ("GET", "/v1/quarantine"): ("/quarantine", None),
    ("POST", "/v1/quarantine/{entry_id}/retry"): ("/quarantine/1/retry", WHY),
    ("POST", "/v1/quarantine/{entry_id}/accept"): ("/quarantine/1/accept", WHY),
    ("POST", "/v1/quarantine/{entry_id}/drop"): ("/quarantine/1/drop", WHY),
    ("GET", "/v1/calendarExceptions"): ("/calendarExceptions", None),
    ("POST", "/v1/calendarExceptions"): (
        "/calendarExceptions",
        {"calendar": "XKRX", "day": "2026-09-16", "why": "a test"},
    ),
    ("PUT", "/v1/calendarExceptions/{calendar}/{day}"): (
        "/calendarExceptions/XKRX/2026-09-16",
        {"state": "closed", "why": "a test"},
    ),
    ("GET", "/v1/controls"): ("/controls", None),
    ("POST", "/v1/controls"): ("/controls", {"action": "freeze", "scope": "all", "why": "a test"}),
    ("GET", "/v1/alerts"): ("/alerts", None),
    ("POST", "/v1/alerts/{alert_id}/retry"): ("/alerts/1/retry", WHY),
    ("POST", "/v1/alerts/{alert_id}/drop"): ("/alerts/1/drop", WHY),
    ("GET", "/v1/silences"): ("/silences", None),
    ("POST", "/v1/silences"): ("/silences", {"pattern": "*", "endsAt": TOMORROW, "why": "a test"}),
    ("POST", "/v1/silences/{silence_id}/end"): ("/silences/7/end", WHY),
    ("GET", "/v1/incidents"): ("/incidents", None),
    ("GET", "/v1/metrics"): ("/metrics", None),
    ("GET", "/v1/openapi.json"): ("/openapi.json", None),
}
WRITES = [case for case in TABLE if case[0] != "GET"]
# Routes for readers and by key, and who is let in (test_disclosures asks them).
READERS = {
    ("GET", "/v1/disclosures/recent"): "public",
    ("GET", "/v1/disclosures"): "public",
    ("GET", "/v1/disclosures/{rcept_no}"): "public",
    ("GET", "/v1/companies/{corp_code}"): "public",
    ("GET", "/v1/ai/analyze/{rcept_no}"): "signed_in",
    ("POST", "/v1/ai/analyze/{rcept_no}/reveal"): "signed_in",
    ("POST", "/v1/admin/disclosures/fetch"): "keyed",
    ("POST", "/v1/admin/backfill"): "keyed",
}


def test_every_route_is_in_the_table_and_says_who_may_use_it(api: Api) -> None:
    routes = api.app.routes
    assert all(isinstance(route, APIRoute) for route in routes)
    assert {(method, route.path) for route in routes for method in route.methods} == {*TABLE, *READERS}  # type: ignore[attr-defined]
    for route in routes:
        ((method,), path) = route.methods, route.path  # type: ignore[attr-defined]
        usual = "reads" if method == "GET" else "writes"
        assert access.declared(route.endpoint) == READERS.get((method, path), usual)  # type: ignore[attr-defined]


def test_nothing_is_public_but_filings_and_companies(api: Api) -> None:
    public = {route.path for route in api.app.routes if route.name in access.PUBLIC_READS}  # type: ignore[attr-defined]
    assert public == {path for (_, path), kind in READERS.items() if kind == "public"}


@pytest.mark.parametrize("case", [case for case, kind in READERS.items() if kind != "public"], ids=" ".join)
def test_strangers_get_nothing_of_what_is_not_public(api: Api, case: tuple[str, str]) -> None:
    path = case[1].replace("{rcept_no}", "20260916000001").removeprefix("/v1")
    answer = api.get(path, None) if case[0] == "GET" else api.send(case[0], path, {}, None)
    assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json")
    # An admin of Airflow has no admin key.
    if READERS[case] == "keyed":
        assert api.send(case[0], path, {}, "admin").status_code == 401


@pytest.mark.parametrize("case", TABLE, ids=" ".join)
def test_who_is_answered_on_every_route(api: Api, case: tuple[str, str]) -> None:
    method, (path, body) = case[0], TABLE[case]
    seen = {}
    for who in (None, "viewer", "user", "admin"):
        answer = api.get(path, who) if method == "GET" else api.send(method, path, body, who)
        seen[who] = answer.status_code
        if answer.status_code >= 400:
            assert answer.headers["content-type"] == "application/problem+json"
            assert set(answer.json()) == {"type", "title", "status", "detail", "errors"}
    assert seen.pop(None) == 401
    if method != "GET":
        assert seen.pop("viewer") == 403
    # Nothing of these names is there yet, which is told to those alone who may know.
    assert set(seen.values()) == {404 if "/1" in path or "/7" in path or "a-run" in path else 200}


@pytest.mark.parametrize("path", ["", "/", "/docs", "/redoc", "/openapi.json", "/v1", "/v1/nothing", "/v1/cycles/x"])
def test_strangers_do_not_even_learn_what_is_there(api: Api, path: str) -> None:
    assert api.client.get(f"/daybook{path}").status_code == 401
    assert api.client.request("OPTIONS", f"/daybook{path}").status_code == 401
    known = api.client.get(f"/daybook{path}", headers=api.headers("viewer")).status_code
    assert known == (422 if path == "/v1/cycles/x" else 404)


@pytest.mark.parametrize("token", ["", "nonsense", "a.b.c"])
def test_a_token_that_airflow_did_not_sign_opens_nothing(api: Api, token: str) -> None:
    answer = api.client.get("/daybook/v1/summary", headers={"authorization": f"Bearer {token}"})
    assert answer.status_code in (401, 403)
    assert "streams" not in answer.text


def test_a_route_that_declares_nothing_is_refused_to_everybody(api: Api) -> None:
    router = APIRouter()

    @router.get("/new")
    def new() -> str:
        return "open"

    api.app.include_router(router, prefix="/v1")
    assert api.get("/new", None).status_code == 401
    assert api.get("/new", "admin").status_code == 403
    assert "open" not in api.get("/new", "admin").text


def test_the_door_is_closed_before_anything_of_the_body_is_read(api: Api) -> None:
    path = "/daybook/v1/controls"
    broken = {"content": b"{" * 100_000, "headers": {"content-type": "application/json"}}
    assert api.client.post(path, **broken).status_code == 401
    long = {"content-type": "application/json", **api.headers("admin")}
    assert api.client.post(path, content=b" " * 70_000, headers=long).status_code == 413
    assert api.client.post(path, content=b"{", headers=long).status_code == 422
    form = {"content-type": "application/x-www-form-urlencoded", **api.headers("admin")}
    assert api.client.post(path, content=b"action=freeze", headers=form).status_code == 415
    assert api.client.post(path, content=iter([b"{}"]), headers=long).status_code == 411


# --- pages of other sites

OWN, STRANGE = "http://127.0.0.1:8080", "http://127.0.0.1:3000"


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({}, False),
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "same-origin", "origin": OWN}, True),
        ({"origin": OWN}, True),
        ({"sec-fetch-site": "none"}, False),
        ({"sec-fetch-site": "same-site"}, False),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "cross-site", "origin": OWN}, False),
        ({"sec-fetch-site": "same-origin", "origin": STRANGE}, False),
        ({"origin": STRANGE}, False),
        ({"origin": "null"}, False),
        ({"origin": "http://127.0.0.1:8080.evil.example"}, False),
        ({"origin": "http://evil.example/127.0.0.1:8080"}, False),
    ],
    ids=str,
)
def test_with_the_cookie_alone_only_airflows_own_pages_change_something(
    api: Api, headers: dict[str, str], allowed: bool
) -> None:
    api.client.cookies.set("_token", api.token("admin"))
    body = {"action": "freeze", "scope": "all", "why": "a test"}
    answer = api.client.post("/daybook/v1/controls", json=body, headers=headers)
    assert answer.status_code == (200 if allowed else 403)
    assert [control["state"] for control in api.read("/controls")] == (["frozen"] if allowed else [])


@pytest.mark.parametrize(
    "headers", [{"sec-fetch-site": "cross-site"}, {"origin": STRANGE}, {"origin": "null"}], ids=str
)
def test_another_sites_page_changes_nothing_with_a_token_either(api: Api, headers: dict[str, str]) -> None:
    # A middleware of Airflow's may add a token to whatever comes, as it does where everybody is an admin.
    body = {"action": "freeze", "scope": "all", "why": "a test"}
    assert api.send("POST", "/controls", body, **headers).status_code == 403


def test_the_cookie_reads(api: Api) -> None:
    api.client.cookies.set("_token", api.token("viewer"))
    assert api.client.get("/daybook/v1/summary").status_code == 200


@pytest.mark.parametrize("case", WRITES, ids=" ".join)
def test_every_change_refuses_the_bare_cookie(api: Api, case: tuple[str, str]) -> None:
    api.client.cookies.set("_token", api.token("admin"))
    path, body = TABLE[case]
    assert api.client.request(case[0], f"/daybook/v1{path}", json=body).status_code == 403


def test_a_parameter_given_twice_is_refused_rather_than_one_of_them_ignored(api: Api) -> None:
    answer = api.get("/cycles", stream=["a", "b"])
    assert answer.status_code == 422
    assert answer.json()["detail"] == "The parameter 'stream' is given more than once; give it once."


def test_a_number_is_not_taken_for_a_date(api: Api) -> None:
    answer = api.get("/slaSnapshot", date="0")
    assert (answer.status_code, "YYYY-MM-DD" in answer.text) == (422, True)
