"""Sending issues to GitHub: one sender at a time, from rows, never twice.

Promises: a request that makes an issue is noted before it is sent; where its answer was lost, the issue is looked for
by the marker in its text before another is made, and not before an answer must have come. Changes and ends are sent so
that sending them again changes nothing. A GitHub that is away, busy or refuses everything costs tries; what it said of
waiting is kept for every process. An issue that somebody deleted or moved out of reach is given up, and said so. Never:
the token is in an address, a message or a log, or goes to another host; no request is sent in a transaction.

It speaks to four addresses, so it does so itself: PyGithub (run through its source) repeats a POST that failed with a
5xx, which is how an issue is made twice, sleeps through rate limits in the task, and brings five packages.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, LiteralString
from urllib.parse import urljoin, urlsplit

import httpx
import psycopg

from include.engine import incidents, issues
from include.engine.db import Row, query, transaction
from include.engine.http import client as http_client
from include.outputs import lease as leases

ENDPOINT = "https://api.github.com"
LABEL = "pipeline-failure"
LEASE = "github"
# GitHub wants a second between two writes, and takes 80 in a minute.
PAUSE_SECONDS, MOST_AT_ONCE = 1.0, 40
SECONDS = 20.0
# A listing that is longer than this is not looked through: what is sought is among the newest.
MOST_PAGES, MOST_HOPS = 20, 3
# How long a refusal of everything is believed, and the longest wait that GitHub is believed.
REFUSED_SECONDS, SECONDARY_SECONDS, LONGEST_SECONDS = 900.0, 60.0, 7_200.0
TOO_QUICK_SECONDS = 600.0
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
_NEXT = re.compile(r'<([^<>]+)>\s*;[^,]*\brel="?next"?')


class GitHubSettingsError(Exception):
    """The connection does not say what is needed to reach GitHub; the text says what is missing."""


@dataclass(frozen=True)
class GitHub:
    """Where issues go: the API's address, a token that may write issues, and the repository, `owner/name`."""

    endpoint: str
    token: str = field(repr=False)
    repository: str


def github(endpoint: str | None, token: str | None, repository: str | None) -> GitHub:
    """Make a GitHub from the values of the connection `github`.

    Raises:
        GitHubSettingsError: token or repository is missing or cannot be one.
    """
    lacks = "" if token and token.strip() else "a token (its password)"
    if not lacks and not (repository and _REPOSITORY.fullmatch(repository)):
        lacks = "a repository as owner/name (in its extra)"
    if lacks:
        raise GitHubSettingsError(
            f"The connection github lacks {lacks}. No issue was sent; what is wrong stands in `incidents` and is told "
            "over Slack. Complete the connection."
        )
    return GitHub((endpoint or ENDPOINT).rstrip("/"), (token or "").strip(), repository or "")


@dataclass(frozen=True)
class Drained:
    """What one round came to: issues made, changed or closed, and what ended it early."""

    sent: int
    error: str | None = None


class Trouble(Exception):
    """GitHub did not do what was asked. `wait` is in seconds."""

    def __init__(self, text: str, wait: float = 0.0) -> None:
        super().__init__(text)
        self.wait = wait


class Lost(Trouble):
    """No answer, or one that leaves open whether it was done."""


class Away(Trouble):
    """It surely was not done, and may be later: for now nothing more is asked."""


class Refused(Trouble):
    """It was not done, and nothing with this connection will be."""


class Unfit(Trouble):
    """GitHub will not take this issue, however often it is sent."""


class Gone(Trouble):
    """The issue is not there any more."""


@dataclass(frozen=True)
class Api:
    """GitHub's interface for the issues of one repository; every method raises a `Trouble` where it does not comply."""

    github: GitHub
    http: httpx.Client

    def make(self, row: Row) -> tuple[int, str, bool]:
        """Make an issue; return its number, its page, and whether it has the label."""
        content = {"title": row["title"], "body": marked(row), "labels": [LABEL]}
        return self._issue(self._ask("POST", f"/repos/{self.github.repository}/issues", content), row)

    def find(self, row: Row) -> tuple[int, str, bool] | None:
        """Look for an issue by its marker among those that are not older; None where it surely is not there."""
        # Newest first, so that the first one which is older ends the search; an hour for two clocks that differ.
        since = (row["first_sent_at"] - timedelta(hours=1)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        where = f"/repos/{row['repository']}/issues?state=all&sort=created&direction=desc&per_page=100&since={since}"
        for _ in range(MOST_PAGES):
            answer = self._ask("GET", where)
            found = _json(answer)
            if not isinstance(found, list):
                raise Lost("GitHub's list of issues is none")
            for each in found:
                if not isinstance(each, dict) or not isinstance(each.get("created_at"), str):
                    raise Lost("GitHub's list of issues holds something else")
                if marker(row) in str(each.get("body") or ""):
                    return _facts(each)
                if each["created_at"] < since:
                    return None
            following = _NEXT.search(answer.headers.get("link", ""))
            if following is None:
                return None
            where = following[1]
        raise Lost(f"the issue is not among the newest {MOST_PAGES * 100}, and there are more")

    def change(self, row: Row) -> tuple[int, str, bool]:
        """Have an issue say what is wanted, and close it where its incident is over."""
        content = {"title": row["title"], "body": marked(row)}
        if row["ends_as"] is not None:
            content |= {"state": "closed", "state_reason": row["ends_as"]}
        try:
            answer = self._ask("PATCH", f"/repos/{row['repository']}/issues/{row['number']}", content)
        except Gone:
            # Where the repository is out of reach, or has no issues for now, the same is said of each of them.
            found = _json(self._ask("GET", f"/repos/{row['repository']}"))
            if not isinstance(found, dict) or not found.get("has_issues"):
                raise Refused(f"{row['repository']} has no issues now", REFUSED_SECONDS) from None
            raise
        return self._issue(answer, row)

    def _issue(self, answer: httpx.Response, row: Row) -> tuple[int, str, bool]:
        found = _json(answer)
        if not isinstance(found, dict) or marker(row) not in str(found.get("body") or ""):
            raise Lost("GitHub's answer is not the issue that was sent")
        return _facts(found)

    def _ask(self, method: str, where: str, content: Mapping[str, Any] | None = None) -> httpx.Response:
        address = where if "://" in where else f"{self.github.endpoint}{where}"
        for _ in range(MOST_HOPS):
            self._check_host(address)
            try:
                answer = self.http.request(method, address, json=content)
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
                raise Away(f"GitHub cannot be reached: {type(error).__name__}") from None
            except httpx.HTTPError as error:
                raise Lost(f"no answer of GitHub: {type(error).__name__}") from None
            if answer.status_code not in (301, 302, 307, 308):
                _judge(answer, is_issue="/issues/" in urlsplit(address).path)
                return answer
            # A repository that has another name now; the same is asked there, whatever the method.
            address = urljoin(address, answer.headers.get("location", ""))
        raise Refused(f"GitHub sends {self.github.repository} from one address to the next", REFUSED_SECONDS)

    def _check_host(self, address: str) -> None:
        asked, own = urlsplit(address), urlsplit(self.github.endpoint)
        if (asked.scheme, asked.netloc) != (own.scheme, own.netloc):
            raise Refused(f"GitHub leads to another host ({asked.netloc}), which gets no token", REFUSED_SECONDS)


def marker(row: Row) -> str:
    """Return what an issue is known by: unique in the world, and not shown."""
    return f"<!-- daybook-incident: {row['marker']} -->"


def marked(row: Row) -> str:
    """Return an issue's text as it is sent."""
    return f"{row['body']}\n\n{marker(row)}\n"


def _facts(found: Mapping[str, Any]) -> tuple[int, str, bool]:
    number, labels = found.get("number"), found.get("labels") or []
    if not isinstance(number, int) or not isinstance(labels, list):
        raise Lost("GitHub's issue has no number")
    names = [label.get("name") if isinstance(label, dict) else label for label in labels]
    return number, str(found.get("html_url") or ""), LABEL in names


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        raise Lost(f"GitHub's answer is no JSON (HTTP {answer.status_code})") from None


def _judge(answer: httpx.Response, *, is_issue: bool) -> None:
    """Raise what an answer that is no success means."""
    status = answer.status_code
    if answer.is_success:
        return
    said = _said(answer)
    text = f"HTTP {status}: {said}"[:500]
    if status in (403, 429) and (limit := _limit(answer, said)) is not None:
        raise Away(text, limit)
    if status >= 500 or status in (408, 409):
        raise Lost(text, _seconds(answer.headers.get("retry-after")) or 0.0)
    if status == 422 and "quickly" in said:
        raise Away(text, TOO_QUICK_SECONDS)
    if status == 422:
        raise Unfit(text)
    if status in (404, 410) and is_issue:
        raise Gone(text)
    raise Refused(text, REFUSED_SECONDS)


def _limit(answer: httpx.Response, said: str) -> float | None:
    """How long a rate limit asks to wait, in seconds; None where the answer tells of none.

    The instant at which a limit ends is compared with the answer's own date: two clocks may differ.
    """
    headers = answer.headers
    asked = _seconds(headers.get("retry-after"))
    is_used_up = headers.get("x-ratelimit-remaining") == "0"
    if asked is None and not is_used_up and "rate limit" not in said.lower():
        return None
    reset, date = _seconds(headers.get("x-ratelimit-reset")), _date(headers.get("date"))
    if asked is None and is_used_up and reset is not None and date is not None:
        asked = reset - date.timestamp() + 1
    return min(max(asked or 0.0, SECONDARY_SECONDS), LONGEST_SECONDS)


def _said(answer: httpx.Response) -> str:
    """What GitHub says of a refusal, its details too; a page of a proxy's says nothing."""
    try:
        found = answer.json()
        errors = found.get("errors") or []
        details = [str(each.get("message") or each.get("code") or "") for each in errors if isinstance(each, dict)]
        return "; ".join(filter(None, [str(found.get("message") or ""), *details]))[:400]
    except (ValueError, AttributeError):
        return "an answer that is none of GitHub's"


def _seconds(text: str | None) -> float | None:
    return float(text) if text and text.strip().isdigit() else None


def _date(text: str | None) -> datetime | None:
    try:
        return parsedate_to_datetime(text) if text else None
    except ValueError:
        return None


# --- the sender ---------------------------------------------------------------------------------------


def drain(
    url: str,
    owner: str,
    github: GitHub,
    stop: Callable[[], bool] = lambda: False,
    pause: Callable[[float], None] = time.sleep,
) -> Drained:
    """Send what waits, oldest incident first, until nothing waits, GitHub asks for a rest or `stop` says so.

    Args:
        url: libpq address of the warehouse.
        owner: named as the holder of the sender's lease.
        github: where to.
        stop: asked between two issues.
        pause: sleeps that many seconds between two writes.
    """
    issues.note_what_is_over(url)
    if _next(url) is None:
        return Drained(0)
    lease = leases.claim(url, LEASE, owner)
    if isinstance(lease, leases.NotClaimed):
        return Drained(0, lease.reason)
    sending = _Sending(lease, github)
    try:
        with leases.renewed(lease), sending.api() as api:
            while sending.error is None and sending.tries < MOST_AT_ONCE and not stop():
                row = _next(url)
                if row is None:
                    break
                if sending.tries:
                    pause(PAUSE_SECONDS)
                sending.send(api, row)
        lease.give_back(sending.rest, sending.error) if sending.rest else lease.give_back()
    except leases.PublishLeaseLost as lost:
        # Whoever has it now looks for what was just sent.
        return Drained(sending.sent, str(lost))
    except BaseException:
        with suppress(psycopg.Error, leases.PublishLeaseLost):
            lease.give_back()
        raise
    return Drained(sending.sent, sending.error)


def _next(url: str) -> Row | None:
    with transaction(url, application="daybook issues", statement_timeout=15) as connection:
        return connection.execute(query("issues.next")).fetchone()


class _Sending:
    """One sender's round: how many issues GitHub took, what ended it, and how long GitHub asked to wait."""

    def __init__(self, lease: leases.PublishLease, github: GitHub) -> None:
        self.sent, self.tries = 0, 0
        self.error: str | None = None
        self.rest: float = 0.0
        self._lease = lease
        self._github = github

    @contextmanager
    def api(self) -> Iterator[Api]:
        """Give the interface with a client of its own, for the length of the block."""
        with http_client("Daybook") as client:
            client.timeout = httpx.Timeout(SECONDS)
            client.headers.update(
                {
                    "Accept": "application/vnd.github+json",
                    "Authorization": f"Bearer {self._github.token}",
                    "X-GitHub-Api-Version": "2022-11-28",
                }
            )
            yield Api(self._github, client)

    def send(self, api: Api, row: Row) -> None:
        """Have GitHub confirm what is wanted of one issue, or note why it does not."""
        self.tries += 1
        self._lease.check()
        self.error, made = None, row["state"] == "known"
        try:
            if made:
                self._confirm(row, api.change(row), row["version"])
                return
            found = api.find(row) if row["state"] == "sending" else None
            if found is not None:
                # What it says may be of an older version: that is sent next, as a change.
                self._confirm(row, found, 0)
                return
            self._write(query("issues.sending"), row, repository=self._github.repository)
            made = True
            self._lease.check()
            self._confirm(row, api.make(row), row["version"])
        except (Gone, Unfit) as trouble:
            self._give_up(row, trouble)
        except Trouble as trouble:
            # A search that failed leaves it where it was: its making may still have arrived.
            is_lost = isinstance(trouble, Lost) or not made
            self._write(query("issues.not_sent"), row, error=str(trouble), is_lost=is_lost, wait=trouble.wait)
            self.error, self.rest = str(trouble), trouble.wait
            if isinstance(trouble, Refused):
                self._open(
                    f"GitHub takes no issues for {self._github.repository} with the connection github: {trouble}. "
                    "Incidents are in `./run cli incidents` and on Slack all the same, and issues wait. Look whether "
                    "the repository is there, has issues, and lets the token write them."
                )

    def _confirm(self, row: Row, facts: tuple[int, str, bool], version: int) -> None:
        number, page, has_label = facts
        error = None if has_label else f"it lacks the label {LABEL}: the token may not set labels"
        self._write(query("issues.known"), row, number=number, url=page, told=version, error=error)
        self.sent += version > 0
        if not has_label and row["state"] != "known":
            self._open(f"Issue {number} of {row['repository'] or self._github.repository} was made, but {error}.")

    def _give_up(self, row: Row, trouble: Trouble) -> None:
        self._write(query("issues.give_up"), row, error=str(trouble))
        which = f"issue {row['number']}" if row["number"] else f"an issue of incident {row['incident_id']}"
        if isinstance(trouble, Unfit):
            self._open(f"GitHub refuses {which} for good: {trouble}. The incident is told elsewhere all the same.")

    def _write(self, statement: LiteralString, row: Row, **values: Any) -> None:
        with self._lease.writing() as connection:
            connection.execute(statement, {"incident": row["incident_id"], **values})

    def _open(self, text: str) -> None:
        with self._lease.writing() as connection:
            incidents.open(connection, key=issues.OUTBOX, severity="warning", text=text)


def text_of(drained: Drained) -> str:
    """Say in words what a round came to; empty where nothing was to be sent."""
    if drained.error:
        return f"GitHub takes no issues for now ({drained.error[:200]}), they wait"
    return f"{drained.sent} issues brought up to date on GitHub" if drained.sent else ""
