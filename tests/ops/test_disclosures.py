"""Readers' routes: who is let in, what is shown to whom, what an opening takes, and what an answer costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from include import registry
from include.engine import credentials
from include.engine.db import connect
from include.engine.raw import RawStore
from include.ops.api import admin, front
from include.settings import Serving
from tests.analysis.office import Office
from tests.fixtures_sandbox import Start
from tests.ops.conftest import HOST, Api, mounted
from tests.sources.places import Place

ADMIN = "an admin key of a test"
WISHES = Serving(per_minute=100_000, quota=3, free_length=100, admin_key=ADMIN)


def opened(database: str, token: Callable[[str], str], serving: Serving, hands: admin.Hands | None = None) -> Any:
    from include.ops.api.app import create_app

    app = create_app(lambda: database, list, serving, hands)
    return app, TestClient(mounted(app), base_url=HOST, raise_server_exceptions=False)


@pytest.fixture
def readers(database: str, token: Callable[[str], str]) -> Iterator[Api]:
    app, client = opened(database, token, WISHES)
    with client:
        yield Api(app, client, token)
    app.state.warehouse.close()


def filled(url: str, count: int = 30, *, status: str = "COMPLETED", length: int = 5_000) -> list[str]:
    """Filings of three days, with an analysis each; newest first, as the feed shows them."""
    with connect(url, autocommit=True) as connection:
        connection.execute("update dartbrief.analysis_control set newest_days = 36000")
        connection.execute(
            "insert into dartbrief.disclosures (rcept_no, corp_code, corp_name, corp_type, report_name, submitter,"
            " rcept_dt, remark, base_title, is_correction, unit, fetch_id, sent_at, parser_version, cycle_id, attempt)"
            " select to_char(day, 'YYYYMMDD') || lpad(n::text, 6, '0'), lpad((100000 + mod(n, 3))::text, 8, '0'),"
            " '가온', 'K', '제목', '가온', day, '', '제목', false, 'u', 1,"
            " '2026-09-16T00:00:00Z'::timestamptz + n / 2 * interval '1 minute', 1, 1, 1"
            " from (select date '2026-09-14' + n / 10 as day, n from generate_series(0, %s - 1) n) made",
            (count,),
        )
        connection.execute(
            "update dartbrief.analysis_cache set status = %s, summary = '요약 ' || rcept_no,"
            " key_points_json = '하나|||둘', sentiment = 'positive', model = 'm', prompt_version = 'other/1',"
            " doc_length = %s, completed_at = collect.clock()",
            (status, length),
        )
        order = "select rcept_no from dartbrief.disclosures order by rcept_dt desc, created_at desc, rcept_no desc"
        return [row["rcept_no"] for row in connection.execute(order)]


# --- filings


def test_the_feed_goes_by_key_newest_first_and_shows_summaries_alone_to_anybody(readers: Api, database: str) -> None:
    numbers = filled(database)
    seen, cursor = [], None
    while True:
        answer = readers.get("/disclosures/recent", None, limit=11, **({"cursor": cursor} if cursor else {}))
        assert answer.status_code == 200, answer.text
        assert answer.headers["cache-control"] == "public, max-age=30"
        page = answer.json()
        seen += [item["rceptNo"] for item in page["items"]]
        assert all(item["summary"] == f"요약 {item['rceptNo']}" for item in page["items"])
        assert "하나" not in answer.text
        assert "keyPoints" not in answer.text
        if (cursor := page["nextCursor"]) is None:
            break
    assert seen == numbers


def test_filings_of_a_company_and_of_days_and_one_and_a_company(readers: Api, database: str) -> None:
    numbers = filled(database)
    of_one = readers.get("/disclosures", None, corpCode="00100001", limit=50).json()["items"]
    assert [item["rceptNo"] for item in of_one] == [n for n in numbers if int(n[8:]) % 3 == 1]
    day = {"beginDate": "2026-09-15", "endDate": "2026-09-15"}
    of_day = readers.get("/disclosures", None, **day, limit=50).json()["items"]
    assert [item["rceptNo"] for item in of_day] == [n for n in numbers if n.startswith("20260915")]
    both = readers.get("/disclosures", None, corpCode="00100001", **day).json()["items"]
    assert [item["rceptNo"] for item in both] == [
        n for n in numbers if n.startswith("20260915") and int(n[8:]) % 3 == 1
    ]
    one = readers.get(f"/disclosures/{numbers[0]}", None)
    assert (one.json()["analysisStatus"], one.headers["cache-control"]) == ("COMPLETED", "public, max-age=300")
    company = readers.get("/companies/00100001", None)
    assert (company.headers["cache-control"], len(company.json()["disclosures"])) == ("public, max-age=60", 10)
    for path in ("/disclosures/20260916999999", "/companies/99999999"):
        assert readers.get(path, None).status_code == 404


@pytest.mark.parametrize(
    ("path", "params"),
    [
        ("/disclosures", {}),
        ("/disclosures", {"beginDate": "2026-09-15"}),
        ("/disclosures", {"beginDate": "2026-09-15", "endDate": "2026-09-14"}),
        ("/disclosures", {"corpCode": "x"}),
        ("/disclosures/recent", {"limit": 9}),
        ("/disclosures/recent", {"limit": 51}),
        ("/disclosures/nothing", {}),
    ],
)
def test_what_cannot_be_answered_is_refused_in_words(readers: Api, path: str, params: dict[str, Any]) -> None:
    assert readers.get(path, None, **params).status_code == 422


def test_a_cursor_of_another_list_is_refused(readers: Api, database: str) -> None:
    filled(database)
    cursor = readers.get("/disclosures/recent", None, limit=10).json()["nextCursor"]
    assert readers.get("/disclosures", None, corpCode="00100001", cursor=cursor).status_code == 400


def test_what_has_not_changed_is_answered_without_its_body(readers: Api, database: str) -> None:
    (number, *_) = filled(database, 3)
    first = readers.get(f"/disclosures/{number}", None)
    path, tag = f"/daybook/v1/disclosures/{number}", first.headers["etag"]
    again = readers.client.get(path, headers={"if-none-match": f'"x", W/{tag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    for other in ("disclosures/recent", "disclosures?corpCode=00100001", "companies/00100001"):
        tagged = readers.client.get(f"/daybook/v1/{other}")
        same = readers.client.get(f"/daybook/v1/{other}", headers={"if-none-match": tagged.headers["etag"]})
        assert (tagged.status_code, same.status_code) == (200, 304)
        assert same.headers["cache-control"] == tagged.headers["cache-control"]
    with connect(database, autocommit=True) as connection:
        connection.execute("update dartbrief.analysis_cache set summary = 'anders'")
    assert readers.client.get(path, headers={"if-none-match": tag}).json()["summary"] == "anders"


def test_a_setting_closes_the_public_routes_and_a_limit_guards_them(database: str, token: Callable[[str], str]) -> None:
    filled(database, 3)
    app, client = opened(database, token, Serving(is_public=False, per_minute=100_000))
    closed = Api(app, client, token)
    assert [closed.get("/disclosures/recent", who).status_code for who in (None, "viewer")] == [401, 200]
    app.state.warehouse.close()
    app, client = opened(database, token, Serving(per_minute=8))
    limited = Api(app, client, token)
    answers = [limited.get("/disclosures/recent", None) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 429, 429]
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 8
    assert answers[-1].headers["content-type"] == "application/problem+json"
    app.state.warehouse.close()


# --- analyses


def test_an_analysis_shows_state_and_summary_and_the_rest_once_it_is_opened(readers: Api, database: str) -> None:
    (number, *_) = filled(database, 3)
    path = f"/ai/analyze/{number}"
    assert readers.get(path, None).status_code == 401
    hidden = readers.get(path)
    assert (hidden.json()["status"], hidden.json()["summary"]) == ("COMPLETED", f"요약 {number}")
    assert [hidden.json()[name] for name in ("keyPoints", "sentiment", "model", "isRevealed")] == [
        None,
        None,
        None,
        False,
    ]
    assert "private" in hidden.headers["cache-control"]
    shown = readers.send("POST", f"{path}/reveal", None, "viewer").json()
    assert (shown["cost"], shown["used"], shown["quota"]) == (1, 1, 3)
    assert shown["analysis"]["keyPoints"] == ["하나", "둘"]
    assert readers.read(path)["keyPoints"] == ["하나", "둘"]
    assert readers.get(path, "user").json()["keyPoints"] is None
    assert readers.send("POST", f"{path}/reveal", None, "viewer").json()["cost"] == 0


@pytest.mark.parametrize("state", ["PENDING", "PROCESSING", "BODY_PENDING", "FAILED"])
def test_what_is_not_finished_is_shown_as_it_is_and_takes_nothing(readers: Api, database: str, state: str) -> None:
    (number, *_) = filled(database, 3, status=state)
    assert readers.read(f"/ai/analyze/{number}")["status"] == state
    assert readers.send("POST", f"/ai/analyze/{number}/reveal", None, "viewer").status_code == 409
    with connect(database, autocommit=True) as connection:
        assert connection.execute("select 1 from dartbrief.reveals").fetchall() == []
        connection.execute("update dartbrief.analysis_cache set retry_count = 3, body_retry_count = 59")
    shown = readers.read(f"/ai/analyze/{number}")["status"]
    assert shown == ("UNAVAILABLE" if state == "FAILED" else state)


def test_a_filing_without_a_row_is_unavailable_and_no_error(readers: Api) -> None:
    answer = readers.get("/ai/analyze/20200101000001")
    assert (answer.status_code, answer.json()["status"]) == (200, "UNAVAILABLE")


def test_a_short_filing_is_free_and_the_quota_ends_at_midnight_in_seoul(readers: Api, database: str) -> None:
    numbers = filled(database, 8)
    with connect(database, autocommit=True) as connection:
        connection.execute("update dartbrief.analysis_cache set doc_length = 100 where rcept_no = %s", (numbers[7],))
    answers = [readers.send("POST", f"/ai/analyze/{number}/reveal", None, "viewer") for number in numbers[:5]]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    assert 0 < int(answers[-1].headers["retry-after"]) <= 86_400
    free = readers.send("POST", f"/ai/analyze/{numbers[7]}/reveal", None, "viewer").json()
    assert (free["cost"], free["used"]) == (0, 3)
    assert readers.send("POST", f"/ai/analyze/{numbers[4]}/reveal", None, "user").status_code == 200
    with connect(database, autocommit=True) as connection:
        connection.execute("update collect.installation set is_sandbox = true, clock_offset = interval '1 day'")
    assert readers.send("POST", f"/ai/analyze/{numbers[4]}/reveal", None, "viewer").json()["used"] == 1


def test_of_openings_at_one_instant_no_more_are_taken_than_there_are(readers: Api, database: str) -> None:
    numbers = filled(database, 10)
    one_filing = [numbers[0]] * 6
    with ThreadPoolExecutor(4) as pool:
        answers = list(
            pool.map(
                lambda number: readers.send("POST", f"/ai/analyze/{number}/reveal", None, "viewer").status_code,
                [*one_filing, *numbers[1:]],
            )
        )
    assert answers.count(200) + answers.count(429) + answers.count(503) == len(answers)
    with connect(database, autocommit=True) as connection:
        taken = connection.execute("select rcept_no from dartbrief.reveals").fetchall()
    assert len(taken) == 3


def test_another_sites_page_opens_nothing(readers: Api, database: str) -> None:
    (number, *_) = filled(database, 1)
    readers.client.cookies.set("_token", readers.token("viewer"))
    path = f"/daybook/v1/ai/analyze/{number}/reveal"
    assert readers.client.post(path).status_code == 403
    assert readers.client.post(path, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert readers.client.post(path, headers={"sec-fetch-site": "same-origin"}).status_code == 200


def test_a_finished_analysis_is_answered_from_memory_for_five_minutes_and_never_to_another(
    readers: Api, database: str
) -> None:
    (number, *_) = filled(database, 3)
    readers.send("POST", f"/ai/analyze/{number}/reveal", None, "viewer")
    readers.read(f"/ai/analyze/{number}")
    with connect(database, autocommit=True) as connection:
        connection.execute("update dartbrief.analysis_cache set summary = 'anders'")
    assert readers.read(f"/ai/analyze/{number}")["summary"] == f"요약 {number}"
    assert readers.get(f"/ai/analyze/{number}", "user").json()["keyPoints"] is None
    kept = readers.app.state.analyses
    kept._clock = lambda: 1e12
    assert readers.read(f"/ai/analyze/{number}")["summary"] == "anders"


def test_memory_is_bounded_in_number_and_age() -> None:
    now = [0.0]
    kept = front.Lru[int](3, lambda: now[0])
    for n in range(3):
        kept.put(n, n, 10)
    assert kept.get(0) == 0
    kept.put(3, 3, 10)
    assert [kept.get(n) for n in range(4)] == [0, None, 2, 3]
    now[0] = 11
    assert [kept.get(n) for n in range(4)] == [None] * 4
    limiter = front.Limiter(60, lambda: now[0])
    assert [limiter.wait("a") for _ in range(16)] == [0.0] * 15 + [1.0]
    assert limiter.wait("b") == 0.0
    now[0] += 2
    assert [limiter.wait("a") == 0.0 for _ in range(3)] == [True, True, False]


# --- for admins


@pytest.fixture
def desk(database: str, token: Callable[[str], str], sandbox: Start, tmp_path: Path) -> Iterator[tuple[Api, list[Any]]]:
    place = Place(database, RawStore(str(tmp_path / "raw")))
    office = Office(place, sandbox(companies=60))
    started: list[Any] = []
    reach = credentials.build(registry.source("dart"), host="", password="k" * 40, sandbox_url=office.running.url)
    hands = admin.Hands(lambda: reach, lambda: place.raw, lambda *order: started.append(order))
    app, client = opened(database, token, WISHES, hands)
    yield Api(app, client, token), started
    app.state.warehouse.close()


DAYS = {"beginDate": "2026-09-15", "endDate": "2026-09-15"}


def test_the_admin_key_lets_in_and_nothing_else_does(desk: tuple[Api, list[Any]]) -> None:
    api, started = desk
    for path in ("/admin/disclosures/fetch", "/admin/backfill"):
        for key in ({}, {"x-admin-key": ""}, {"x-admin-key": ADMIN[:-1]}, {"x-admin-key": f"{ADMIN} "[1:]}):
            assert api.send("POST", path, DAYS, "admin", **key).status_code == 401
        assert api.send("POST", path, {}, None, **{"x-admin-key": ADMIN}).status_code == 422
    assert started == []


def test_a_fetch_asks_dart_now_through_its_ledger_and_keeps_the_answer(
    desk: tuple[Api, list[Any]], database: str
) -> None:
    api, _ = desk
    key = {"x-admin-key": ADMIN}
    answer = api.send("POST", "/admin/disclosures/fetch", {**DAYS, "pageCount": 5}, None, **key)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert (found["answerClass"], len(found["rows"])) == ("data", 5)
    assert {row["corp_cls"] for row in found["rows"]} == {"Y"}
    corp = found["rows"][0]["corp_code"]
    of_one = api.send("POST", "/admin/disclosures/fetch", {**DAYS, "corpCode": corp}, None, **key).json()
    assert {row["corp_code"] for row in of_one["rows"]} == {corp}
    with connect(database, autocommit=True) as connection:
        rows = connection.execute("select stream, sha256 from collect.fetches").fetchall()
        used = connection.execute("select sum(used) as n from collect.key_usage").fetchone()
        assert connection.execute("select 1 from dartbrief.disclosures").fetchall() == []
    assert [row["stream"] for row in rows] == ["dart.debug"] * 2
    assert used is not None
    assert used["n"] == 2


def test_a_fetch_without_more_words_asks_for_the_first_twenty_of_kospi_and_of_a_company_for_all_classes(
    desk: tuple[Api, list[Any]], database: str
) -> None:
    api, _ = desk
    for wish in (DAYS, {**DAYS, "corpCode": "00126380"}, {**DAYS, "pageNo": 2, "pageCount": 100}):
        answer = api.send("POST", "/admin/disclosures/fetch", wish, None, **{"x-admin-key": ADMIN})
        assert answer.status_code == 200, answer.text
    for wish in ({"beginDate": "2026-09-15"}, {**DAYS, "pageCount": 101}, {**DAYS, "pageNo": 0}):
        answer = api.send("POST", "/admin/disclosures/fetch", wish, None, **{"x-admin-key": ADMIN})
        assert answer.status_code == 422
    with connect(database, autocommit=True) as connection:
        rows = connection.execute("select request_key from collect.fetches order by fetch_id").fetchall()
    days = "bgn_de=20260915/end_de=20260915"
    assert [row["request_key"] for row in rows] == [
        f"{days}/page_no=1/page_count=20/corp_cls=Y",
        f"{days}/page_no=1/page_count=20/corp_code=00126380",
        f"{days}/page_no=2/page_count=100/corp_cls=Y",
    ]


def test_a_backfill_starts_the_dag_and_says_where_its_progress_is(desk: tuple[Api, list[Any]]) -> None:
    api, started = desk
    wish = {"beginDate": "2026-09-01", "endDate": "2026-09-15"}
    answer = api.send("POST", "/admin/backfill", wish, None, **{"x-admin-key": ADMIN})
    assert answer.status_code == 202
    ((dag, run_id, conf),) = started
    assert (dag, conf["mode"], conf["start_date"], conf["end_date"]) == ("dart", "backfill", "2026-09-01", "2026-09-15")
    assert answer.json() == {"runId": run_id, "progress": f"/daybook/v1/jobRuns/{run_id}"}
    assert conf["run_id"] == run_id


def test_the_feed_stays_on_its_index_however_far_down_it_goes(readers: Api, database: str) -> None:
    from include.engine.db import query

    filled(database, 20_000)
    with connect(database, autocommit=True) as connection:
        connection.execute(
            "update dartbrief.disclosures set corp_code = lpad((100000 + mod(rcept_no::bigint, 500))::text, 8, '0')"
        )
        connection.execute("vacuum (analyze) dartbrief.disclosures")
        connection.execute("analyze dartbrief.analysis_cache")
        deep = connection.execute(
            "select rcept_dt as day, created_at as at, rcept_no as number from dartbrief.disclosures"
            " order by rcept_dt desc, created_at desc, rcept_no desc offset 15000 limit 1"
        ).fetchone()
        assert deep is not None
        values = {**deep, "first": "0001-01-01", "last": "9999-12-31", "limit": 21, "corp_code": "00100001"}
        for name, index in (("feed", "disclosures_by_appearance"), ("of_company", "disclosures_by_corp")):
            asked = query("ops_disclosures.feed") if name == "feed" else query("ops_disclosures.of_company")
            plan = connection.execute(f"explain (analyze, buffers, format json) {asked}", values).fetchone()  # type: ignore[arg-type]
            assert plan is not None
            top = plan["QUERY PLAN"][0]["Plan"]
            text = str(top)
            assert index in text, text
            assert "Seq Scan" not in text
            assert "Sort" not in text
            # Two small reads for each row shown, and not one for each that was passed over.
            assert top["Shared Hit Blocks"] + top["Shared Read Blocks"] < 400


def test_times_end_at_midnight_in_seoul_by_the_databases_clock(readers: Api, database: str) -> None:
    (number, *_) = filled(database, 1)
    shown = readers.send("POST", f"/ai/analyze/{number}/reveal", None, "viewer").json()
    assert shown["resetsAt"].endswith("T00:00:00+09:00")
