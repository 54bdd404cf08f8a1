from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from include.sandbox.exchange import Call
from include.sandbox.recordings import COLUMNS, RecordingsError, choose, load, pairs_of, players
from tests.fixtures_sandbox import TUESDAY_EVENING, Start

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT.parent / "shared" / "upstream" / "samples"

ROWS = (
    "GET cdn.finra.org /equity/regsho/daily/CNMSshvol20260814.txt - - 200 text/plain finra/day.txt",
    "GET api.stlouisfed.org /fred/series series_id=GDP - 200 application/json plain.json",
    "GET api.stlouisfed.org /fred/series series_id=GDP&realtime_start=1776-07-04 - 200 application/json all.json",
    "GET api.stlouisfed.org /fred/search search_text=monetary%2Bindex - 200 application/json plain.json",
    "GET ecos.bok.or.kr /api/StatisticSearch/*/json/kr/1/*/817Y002/D - - 200 application/json plain.json",
    "POST data.krx.co.kr /comm/getJsonData.cmd - bld=dbms%2FMDC%2FSTAT&searchText= 200 application/json all.json",
    "GET data.sec.gov /submissions/CIK1.json - - 404 application/xml gone.xml",
)
FILES = {
    "finra/day.txt": b"Date|Symbol\r\n0\r\n",
    "plain.json": b'{"plain": 1}',
    "all.json": b'{"all": 1}',
    "gone.xml": b"<Error>recorded</Error>",
}


def written(directory: Path, *rows: str) -> Path:
    """A directory of recordings; in a row fields are parted by blanks and a dash is an empty one."""
    for name, body in FILES.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(body)
    lines = ["\t".join(COLUMNS)]
    lines += ["\t".join("" if part == "-" else part for part in row.split(" ")) for row in rows]
    (directory / "recordings.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return directory


def test_a_recorded_answer_is_sent_byte_for_byte_with_validators(sandbox: Start, tmp_path: Path) -> None:
    running = sandbox(recordings=written(tmp_path / "rec", *ROWS))
    path = "/cdn.finra.org/equity/regsho/daily/CNMSshvol20260814.txt"
    answer = running.get(path)
    assert answer.content == FILES["finra/day.txt"]
    assert answer.headers["content-type"] == "text/plain"
    assert running.get(path, headers={"If-None-Match": answer.headers["etag"]}).status_code == 304
    assert running.get(path, headers={"If-Modified-Since": answer.headers["last-modified"]}).status_code == 304
    gone = running.get("/data.sec.gov/submissions/CIK1.json")
    assert (gone.status_code, gone.content) == (404, FILES["gone.xml"])
    assert running.get("/_sandbox/health").json()["mode"] == "recordings"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/fred/series?series_id=GDP&file_type=json&api_key=k", b"plain"),
        ("/fred/series?file_type=json&series_id=GDP&realtime_start=1776-07-04", b"all"),
        ("/fred/search?search_text=monetary%2Bindex", b"plain"),
        ("/fred/search?search_text=monetary+index", b"plain"),
        ("/fred/search?search_text=monetary%20index", b"plain"),
    ],
)
def test_of_several_recordings_the_one_that_asks_for_most_is_served(tmp_path: Path, path: str, body: bytes) -> None:
    plain, _, query = path.partition("?")
    call = Call("GET", "api.stlouisfed.org", plain, query, {}, b"", TUESDAY_EVENING)
    chosen = choose(load(written(tmp_path, *ROWS)), call)
    assert chosen is not None
    assert body in chosen.file.read_bytes()


def test_a_star_stands_for_text_within_one_segment(sandbox: Start, tmp_path: Path) -> None:
    running = sandbox(recordings=written(tmp_path / "rec", *ROWS))
    search = "/ecos.bok.or.kr/api/StatisticSearch"
    assert running.get(f"{search}/KEY/json/kr/1/100/817Y002/D").json() == {"plain": 1}
    assert "INFO-200" in running.get(f"{search}/KEY/x/json/kr/1/100/817Y002/D").text


def test_a_posted_form_must_hold_the_recorded_pairs(sandbox: Start, tmp_path: Path) -> None:
    running = sandbox(recordings=written(tmp_path / "rec", *ROWS))
    url = f"{running.url}/data.krx.co.kr/comm/getJsonData.cmd"
    assert httpx.post(url, data={"bld": "dbms/MDC/STAT", "searchText": "", "x": "1"}).json() == {"all": 1}
    assert httpx.post(url, data={"bld": "dbms/MDC/STAT"}).json()["output"] == []
    assert httpx.get(url).json()["output"] == []


@pytest.mark.parametrize(
    ("path", "status", "word"),
    [
        ("/cdn.finra.org/equity/regsho/daily/CNMSshvol20260915.txt", 403, "AccessDenied"),
        ("/data.sec.gov/submissions/CIK2.json", 404, "NoSuchKey"),
        ("/www.sec.gov/Archives/edgar/x.idx", 403, "AccessDenied"),
        ("/opendart.fss.or.kr/api/list.json", 200, '"013"'),
        ("/opendart.fss.or.kr/api/document.xml", 200, "<status>013</status>"),
        ("/api.stlouisfed.org/fred/series", 400, "error_code"),
        ("/data.alpaca.markets/v2/stocks/bars?symbols=A", 200, '{"bars":{},"next_page_token":null}'),
        ("/paper-api.alpaca.markets/v2/assets/Z", 404, "asset not found for Z"),
        ("/data-dbg.krx.co.kr/svc/apis/sto/stk", 200, '{"OutBlock_1":[]}'),
        ("/kind.krx.co.kr/corpgeneral/corpList.do", 200, "<table>"),
    ],
)
def test_what_was_not_recorded_gets_that_upstreams_own_absence(
    tmp_path: Path, path: str, status: int, word: str
) -> None:
    host, _, rest = path.lstrip("/").partition("/")
    plain, _, query = rest.partition("?")
    stand_ins = {one.hosts[0]: one for one in players(load(written(tmp_path, ROWS[0])))}
    answer = stand_ins[host].answer(Call("GET", host, f"/{plain}", query, {}, b"", TUESDAY_EVENING))
    assert answer.status == status
    assert word in answer.body.decode()


def test_hub_and_slack_are_played_beside_recordings(sandbox: Start, tmp_path: Path) -> None:
    running = sandbox(recordings=written(tmp_path / "rec", *ROWS))
    assert httpx.post(running.slack_url, json={"text": "x"}).text == "ok"
    assert running.get("/api/datasets/no/such").headers["x-error-code"] == "RepoNotFound"


def test_recordings_are_read_where_they_lie(sandbox: Start, tmp_path: Path) -> None:
    directory = written(tmp_path / "rec", ROWS[1])
    before = {path: path.stat().st_mtime_ns for path in directory.rglob("*")}
    running = sandbox(recordings=directory)
    path = "/api.stlouisfed.org/fred/series?file_type=json&series_id=GDP"
    assert running.get(path).json() == {"plain": 1}
    assert {path: path.stat().st_mtime_ns for path in directory.rglob("*")} == before
    assert not [path for path in running.state.rglob("*") if path.is_file() and b"plain" in path.read_bytes()]


@pytest.mark.parametrize(
    ("row", "word"),
    [
        ("GET cdn.finra.org /x - - 200 text/plain missing.txt", "missing.txt' is not there"),
        ("GET cdn.finra.org /x - - 200 text/plain ../outside.txt", "leaves the directory"),
        ("GET cdn.finra.org /x - - 200 text/plain /etc/hostname", "leaves the directory"),
        ("GET cdn.finra.org /x - - 200 text/plain link.txt", "link out of the directory"),
        ("GET cdn.finra.org /x - - OK text/plain plain.json", "no HTTP status"),
        ("GET - /x - - 200 text/plain plain.json", "host is empty"),
    ],
)
def test_a_fault_in_the_index_is_named_with_its_line(tmp_path: Path, row: str, word: str) -> None:
    directory = written(tmp_path / "rec", ROWS[0], row)
    (tmp_path / "outside.txt").write_text("secret")
    (directory / "link.txt").symlink_to(tmp_path / "outside.txt")
    with pytest.raises(RecordingsError, match=r"line 3") as refused:
        load(directory)
    assert word in str(refused.value)


def test_a_directory_without_a_usable_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingsError, match=r"holds no recordings\.tsv"):
        load(tmp_path)
    for text, word in (("", "no recording"), ("method\thost\nGET\tx\n", "lacks the column"), ("\xff", "UTF-8")):
        (tmp_path / "recordings.tsv").write_bytes(text.encode("latin-1"))
        with pytest.raises(RecordingsError, match=word):
            load(tmp_path)


def test_pairs_are_compared_decoded() -> None:
    assert pairs_of("a=b%20c&d=") == pairs_of("d=&a=b+c")


def test_every_sample_of_the_reference_can_be_asked_for(sandbox: Start) -> None:
    if not (SAMPLES / "recordings.tsv").is_file():
        pytest.skip(f"the recorded samples are not at {SAMPLES}")
    running = sandbox(recordings=SAMPLES)
    served = 0
    for one in load(SAMPLES):
        path = one.path.replace("*", "any")
        query, body = dict(one.query_has), dict(one.body_has)
        answer = httpx.request(
            one.method, f"{running.url}/{one.host}{path}", params=query, data=body or None, timeout=30
        )
        assert (answer.status_code, answer.content) == (one.status, one.file.read_bytes()), one
        assert answer.headers["content-type"] == one.content_type
        served += 1
    assert served >= 70
    cut = running.get("/cdn.finra.org/equity/regsho/daily/CNMSshvol20260813.txt")
    assert cut.content == (SAMPLES / "finra" / "CNMSshvol20260813_head.txt").read_bytes()
