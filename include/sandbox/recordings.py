"""Recorded answers in place of generated ones.

Promises: a directory with a `recordings.tsv` is checked when the sandbox starts, whole, and a fault in it is
named by line; a recorded body is sent byte for byte; what was not recorded gets that upstream's own "absent"
answer. Never: a recording is copied, changed or read from outside its directory.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from include.sandbox import absent
from include.sandbox.exchange import Answer, Call, Upstream, validated

INDEX = "recordings.tsv"
COLUMNS = ("method", "host", "path", "query_has", "body_has", "status", "content_type", "file")

Pair = tuple[str, str]


class RecordingsError(Exception):
    """The directory of recordings cannot be used; the text says where and why."""


@dataclass(frozen=True)
class Recording:
    """One recorded answer and the calls that it is for.

    `path` may hold `*` for any text within one segment. `query_has` and `body_has` are pairs that a call must
    contain, decoded. `weight` orders recordings that fit the same call: the one that asks for more wins.
    """

    method: str
    host: str
    path: str
    query_has: frozenset[Pair]
    body_has: frozenset[Pair]
    status: int
    content_type: str
    file: Path
    pattern: re.Pattern[str]

    @property
    def weight(self) -> tuple[int, int]:
        """How much this recording asks for: pairs first, then literal text of the path."""
        return len(self.query_has) + len(self.body_has), len(self.path) - self.path.count("*")

    def fits(self, call: Call, query: frozenset[Pair], body: frozenset[Pair]) -> bool:
        """Whether the call is one that this answer is for."""
        method = "GET" if call.method == "HEAD" else call.method
        return (
            self.method == method
            and self.host == call.host
            and self.pattern.fullmatch(call.plain_path) is not None
            and self.query_has <= query
            and self.body_has <= body
        )


def pairs_of(text: str) -> frozenset[Pair]:
    """The pairs of a query or form, decoded; a plus that was encoded and a blank count as the same."""
    return frozenset(
        (key.replace("+", " "), value.replace("+", " ")) for key, value in parse_qsl(text, keep_blank_values=True)
    )


def load(directory: Path) -> tuple[Recording, ...]:
    """Read the recordings of a directory.

    Raises:
        RecordingsError: there is no index, a line of it cannot be read, or it names a file that is not there.
    """
    index = directory / INDEX
    if not index.is_file():
        raise RecordingsError(
            f"{directory} holds no {INDEX}. Give a directory with one; its columns are {', '.join(COLUMNS)}."
        )
    with index.open(encoding="utf-8", newline="") as text:
        try:
            rows = list(csv.DictReader(text, delimiter="\t", quoting=csv.QUOTE_NONE))
        except (UnicodeDecodeError, csv.Error) as failure:
            raise RecordingsError(f"{index} cannot be read as tab-separated UTF-8 text: {failure}.") from None
    if not rows:
        raise RecordingsError(f"{index} lists no recording.")
    missing = [column for column in COLUMNS if column not in rows[0]]
    if missing:
        raise RecordingsError(f"{index} lacks the column {', '.join(missing)}.")
    return tuple(_recording(directory, index, number, row) for number, row in enumerate(rows, start=2))


def _recording(directory: Path, index: Path, number: int, row: Mapping[str, str | None]) -> Recording:
    where = f"{index}, line {number}"
    value = {column: (row.get(column) or "").strip() for column in COLUMNS}
    empty = [column for column in ("method", "host", "path", "status", "file") if not value[column]]
    if empty:
        raise RecordingsError(f"{where}: {', '.join(empty)} is empty.")
    if not value["status"].isdigit() or not 100 <= int(value["status"]) <= 599:
        raise RecordingsError(f"{where}: {value['status']!r} is no HTTP status.")
    named = Path(value["file"])
    if named.is_absolute() or ".." in named.parts:
        raise RecordingsError(f"{where}: {value['file']!r} leaves the directory; name a file inside it.")
    file = directory / named
    if not file.is_file():
        raise RecordingsError(f"{where}: the file {value['file']!r} is not there.")
    if not file.resolve().is_relative_to(directory.resolve()):
        raise RecordingsError(f"{where}: {value['file']!r} is a link out of the directory.")
    path = unquote(value["path"])
    pattern = re.compile("[^/]*".join(re.escape(part) for part in path.split("*")))
    return Recording(
        method=value["method"].upper(),
        host=value["host"].lower(),
        path=path,
        query_has=pairs_of(value["query_has"]),
        body_has=pairs_of(value["body_has"]),
        status=int(value["status"]),
        content_type=value["content_type"] or "application/octet-stream",
        file=file,
        pattern=pattern,
    )


def choose(recordings: Sequence[Recording], call: Call) -> Recording | None:
    """The recording for a call: of those that fit the one that asks for most, then the first."""
    query = pairs_of(call.query)
    body = pairs_of(call.body.decode("utf-8", "replace"))
    fitting = [one for one in recordings if one.fits(call, query, body)]
    return max(fitting, key=lambda one: one.weight, default=None)


def players(recordings: Sequence[Recording], known: Sequence[Upstream] = ()) -> tuple[Upstream, ...]:
    """The stand-ins that answer from recordings: one for every host recorded or whose "absent" is known.

    `known` are the generating stand-ins of the same hosts: what they keep out of the log stays out of it.
    """
    of_host = {host: player for player in known for host in player.hosts}
    hosts = sorted({one.host for one in recordings} | set(absent.BY_HOST) | set(of_host))
    return tuple(_player(recordings, host, of_host.get(host)) for host in hosts)


def _player(recordings: Sequence[Recording], host: str, known: Upstream | None) -> Upstream:
    missing = known.absent if known else absent.BY_HOST.get(host, absent.not_found)
    mine = tuple(one for one in recordings if one.host == host)

    def answer(call: Call) -> Answer:
        recording = choose(mine, call)
        if recording is None:
            return missing(call)
        body = recording.file.read_bytes()
        if recording.status != 200:
            return Answer(recording.status, body, (("Content-Type", recording.content_type),))
        modified = datetime.fromtimestamp(recording.file.stat().st_mtime, UTC)
        return validated(call, body, recording.content_type, modified)

    def view() -> dict[str, Any]:
        return {
            "recordings": [
                {"method": one.method, "path": one.path, "status": one.status, "file": one.file.name} for one in mine
            ]
        }

    return Upstream(
        name=f"recordings of {host}",
        hosts=(host,),
        answer=answer,
        absent=missing,
        kind=lambda call: "recorded",
        view=view,
        secret_params=known.secret_params if known else frozenset(),
        mask=known.mask if known else str,
    )
