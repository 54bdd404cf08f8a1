"""GitHub's interface for issues, as far as somebody goes who reports what is wrong.

Promises: issues are kept in order with their numbers, pull requests among them as GitHub lists them; refusals, limits
and pages have GitHub's own form, headers included. Never: a token is kept or shown.

A token that begins with `invalid` is unknown, one that begins with `readonly` reads, the issues of one that begins with
`nopush` get no labels; any other may do what is done here. Every repository exists but those of the owner `nobody`.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from include.sandbox.exchange import Answer, Call, SwitchError, Upstream, World, json_answer

HOST = "api.github.com"
DOCS = "https://docs.github.com/rest"
MOST_TITLE, MOST_BODY = 256, 65_536
MOST_PER_PAGE, PER_PAGE = 100, 30

_ROUTES = tuple(
    (method, re.compile(pattern), kind)
    for method, pattern, kind in (
        ("GET", r"/repos/(?P<repo>[^/]+/[^/]+)", "repo"),
        ("GET", r"/(?:repos/(?P<repo>[^/]+/[^/]+)|repositories/(?P<id>\d+))/issues", "list"),
        ("POST", r"/(?:repos/(?P<repo>[^/]+/[^/]+)|repositories/(?P<id>\d+))/issues", "create"),
        ("GET", r"/(?:repos/(?P<repo>[^/]+/[^/]+)|repositories/(?P<id>\d+))/issues/(?P<number>\d+)", "get"),
        ("PATCH", r"/(?:repos/(?P<repo>[^/]+/[^/]+)|repositories/(?P<id>\d+))/issues/(?P<number>\d+)", "update"),
    )
)


def kind_of(call: Call) -> tuple[str, dict[str, str]]:
    """The word for a call, and the parts of its address."""
    for method, pattern, kind in _ROUTES:
        found = pattern.fullmatch(call.path) if method == call.method else None
        if found:
            return kind, {name: part for name, part in found.groupdict().items() if part}
    return "other", {}


@dataclass
class Issue:
    """One issue, or a pull request, which GitHub lists among them."""

    number: int
    title: str
    body: str | None
    labels: list[str]
    at: datetime
    updated: datetime
    state: str = "open"
    reason: str | None = None
    closed: datetime | None = None
    is_pull: bool = False


@dataclass
class Repo:
    """A repository: its number, its issues, and what was switched."""

    id: int
    name: str
    issues: dict[int, Issue] = field(default_factory=dict)
    last: int = 0
    has_issues: bool = True
    moved_to: str | None = None


@dataclass
class Limit:
    """The requests that are left in the hour; None: as many as you like."""

    left: int | None = None
    ends: datetime | None = None
    hour: timedelta = timedelta(hours=1)


class GitHub:
    """Repositories and their issues."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._repos: dict[str, Repo] = {}
        self._limit = Limit()

    # --- answers --------------------------------------------------------------------------------------

    def answer(self, call: Call) -> Answer:
        """Answer one call."""
        with self._lock:
            headers = self._count(call)
            if headers is None:
                return self._over(call)
            return self._permitted(call).plus(*headers)

    def _permitted(self, call: Call) -> Answer:
        token = call.headers.get("authorization", "").partition(" ")[2].strip()
        if token.startswith("invalid"):
            return refusal(401, "Bad credentials")
        kind, parts = kind_of(call)
        name = parts.get("repo") or next((r.name for r in self._repos.values() if str(r.id) == parts.get("id")), "")
        # What a token may not see is not there, for whoever asks.
        if kind == "other" or not token or not name or name.startswith("nobody/"):
            return refusal(404, "Not Found")
        repo = self._repos.setdefault(name, Repo(1_000 + len(self._repos), name))
        if repo.moved_to is not None:
            self._repos.setdefault(repo.moved_to, Repo(1_000 + len(self._repos), repo.moved_to))
            there = call.path.replace(f"/repos/{name}", f"/repositories/{self._repos[repo.moved_to].id}")
            return refusal(301, "Moved Permanently").plus(("Location", _base(call) + there))
        if kind == "repo":
            return json_answer(200, _repository(repo, call))
        if not repo.has_issues:
            return refusal(410, "Issues are disabled for this repo")
        if kind != "list" and kind != "get" and token.startswith("readonly"):
            return refusal(403, "Resource not accessible by personal access token")
        if kind == "list":
            return _listed(repo, call)
        if kind == "create":
            return self._created(repo, call, may_label=not token.startswith("nopush"))
        issue = repo.issues.get(int(parts["number"]))
        if issue is None:
            deleted = int(parts["number"]) <= repo.last
            return refusal(410, "This issue was deleted") if deleted else refusal(404, "Not Found")
        return json_answer(200, shown(repo, issue, call)) if kind == "get" else _updated(repo, issue, call)

    def _created(self, repo: Repo, call: Call, *, may_label: bool) -> Answer:
        content = _content(call)
        if content is None:
            return refusal(400, "Problems parsing JSON")
        if not str(content.get("title") or "").strip():
            return _unprocessable("title", "missing_field")
        if (trouble := _too_long(content)) is not None:
            return trouble
        repo.last += 1
        labels = [str(each) for each in content.get("labels") or []] if may_label else []
        issue = Issue(repo.last, str(content["title"]), content.get("body"), labels, call.at, call.at)
        repo.issues[repo.last] = issue
        made = json_answer(201, shown(repo, issue, call))
        return made.plus(("Location", f"{_base(call)}/repos/{repo.name}/issues/{issue.number}"))

    # --- limits ---------------------------------------------------------------------------------------

    def _count(self, call: Call) -> tuple[tuple[str, str], ...] | None:
        """Count a call: the headers that tell the state, or None where it is one too many."""
        limit = self._limit
        if limit.ends is None or call.at >= limit.ends:
            # The state of a limit that was set by a switch lasts as long as its hour.
            limit.left = limit.left if limit.ends is None else None
            limit.ends = call.at + limit.hour
        if limit.left is not None:
            if limit.left <= 0:
                return None
            limit.left -= 1
        return self._state(call)

    def _state(self, call: Call) -> tuple[tuple[str, str], ...]:
        ends = self._limit.ends or call.at
        left = 5_000 if self._limit.left is None else self._limit.left
        return (
            ("X-RateLimit-Limit", "5000"),
            ("X-RateLimit-Remaining", str(left)),
            ("X-RateLimit-Reset", str(int(ends.timestamp()))),
            ("X-RateLimit-Used", str(5_000 - left)),
            ("X-RateLimit-Resource", "core"),
            ("X-GitHub-Media-Type", "github.v3; format=json"),
            ("X-GitHub-Api-Version-Selected", call.headers.get("x-github-api-version", "2022-11-28")),
        )

    def _over(self, call: Call) -> Answer:
        sentence = (
            "API rate limit exceeded for user ID 1. If you reach out to GitHub Support for help, please include the "
            "request ID 0000:0:0:0:0."
        )
        return refusal(403, sentence, "using-the-rest-api/rate-limits-for-the-rest-api").plus(*self._state(call))

    # --- control --------------------------------------------------------------------------------------

    def switch(self, order: Mapping[str, Any]) -> Mapping[str, Any]:
        """Change what is there.

        {"switch": "limit", "left": 0}: so many requests are left in this hour (null: no limit);
        {"switch": "issues", "repository": "o/r", "on": false}; {"switch": "move", "repository": "o/r", "to": "o/s"};
        {"switch": "delete", "repository": "o/r", "number": 1}; {"switch": "pulls", "repository": "o/r", "count": 150}.

        Raises:
            SwitchError: the order cannot be read.
        """
        with self._lock:
            word = order.get("switch")
            if word == "limit":
                self._limit = Limit(left=order.get("left"))
                return {"left": self._limit.left}
            repo = self._repos.get(str(order.get("repository")))
            if repo is None and order.get("repository"):
                repo = self._repos[str(order["repository"])] = Repo(1_000 + len(self._repos), str(order["repository"]))
            if repo is None:
                raise SwitchError(
                    "GitHub's switches limit, issues, move, delete and pulls; all but the first name a repository"
                )
            if word == "issues":
                repo.has_issues = bool(order.get("on"))
            elif word == "move":
                moved = self._repos.setdefault(str(order["to"]), Repo(1_000 + len(self._repos), str(order["to"])))
                moved.issues, moved.last, repo.moved_to = repo.issues, repo.last, moved.name
            elif word == "delete":
                repo.issues.pop(int(order.get("number") or 0), None)
            elif word == "pulls":
                at = max(
                    (each.at for each in repo.issues.values()),
                    default=datetime.fromisoformat("2026-09-15T00:00:00+00:00"),
                )
                for _ in range(int(order.get("count") or 1)):
                    repo.last += 1
                    repo.issues[repo.last] = Issue(repo.last, "A change", None, [], at, at, is_pull=True)
            else:
                raise SwitchError(f"GitHub has no switch {word!r}")
            return {"repository": repo.name, "has_issues": repo.has_issues, "moved_to": repo.moved_to}

    def reset(self) -> None:
        """Forget limits and what was switched; issues stay."""
        with self._lock:
            self._limit = Limit()
            for repo in self._repos.values():
                repo.has_issues, repo.moved_to = True, None

    def view(self) -> dict[str, Any]:
        """All issues, for reading."""
        with self._lock:
            return {
                "repositories": [
                    {
                        "name": repo.name,
                        "issues": [
                            {
                                name: getattr(each, name)
                                for name in ("number", "title", "body", "labels", "state", "reason")
                            }
                            for each in repo.issues.values()
                            if not each.is_pull
                        ],
                    }
                    for repo in self._repos.values()
                ]
            }


# --- forms ------------------------------------------------------------------------------------------------


def refusal(status: int, message: str, page: str = "") -> Answer:
    """An error in GitHub's form."""
    return json_answer(
        status, {"message": message, "documentation_url": f"{DOCS}/{page}" if page else DOCS, "status": str(status)}
    )


def _unprocessable(name: str, code: str, message: str | None = None) -> Answer:
    error = {"resource": "Issue", "code": code, "field": name} | ({"message": message} if message else {})
    body = {"message": "Validation Failed", "errors": [error]}
    return json_answer(422, body | {"documentation_url": f"{DOCS}/issues/issues", "status": "422"})


def _too_long(content: Mapping[str, Any]) -> Answer | None:
    for name, most in (("title", MOST_TITLE), ("body", MOST_BODY)):
        if len(str(content.get(name) or "")) > most:
            return _unprocessable(name, "custom", f"{name} is too long (maximum is {most} characters)")
    return None


def _content(call: Call) -> dict[str, Any] | None:
    try:
        found = call.json()
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _updated(repo: Repo, issue: Issue, call: Call) -> Answer:
    content = _content(call)
    if content is None:
        return refusal(400, "Problems parsing JSON")
    if (trouble := _too_long(content)) is not None:
        return trouble
    state = content.get("state", issue.state)
    if state not in ("open", "closed"):
        return _unprocessable("state", "invalid")
    issue.title, issue.body = str(content.get("title", issue.title)), content.get("body", issue.body)
    if state != issue.state:
        issue.closed = call.at if state == "closed" else None
        issue.reason = content.get("state_reason") or ("completed" if state == "closed" else "reopened")
    issue.state, issue.updated = state, call.at
    return json_answer(200, shown(repo, issue, call))


def _listed(repo: Repo, call: Call) -> Answer:
    """One page of the issues, newest first where nothing else is asked for."""
    params = call.params()
    wanted = params.get("state", "open")
    labels = [each for each in params.get("labels", "").split(",") if each]
    since = params.get("since", "")
    found = [
        each
        for each in repo.issues.values()
        if wanted in ("all", each.state)
        and all(label in each.labels for label in labels)
        and (not since or _stamp(each.updated) >= since)
    ]
    by = "updated" if params.get("sort") == "updated" else "at"
    found.sort(key=lambda each: (getattr(each, by), each.number), reverse=params.get("direction", "desc") == "desc")
    size = min(int(params.get("per_page") or PER_PAGE), MOST_PER_PAGE)
    page = max(int(params.get("page") or 1), 1)
    answer = json_answer(200, [shown(repo, each, call) for each in found[(page - 1) * size : page * size]])
    last = -(-len(found) // size)
    links = [("prev", page - 1), ("next", page + 1), ("last", last), ("first", 1)]
    there = [
        f'<{_base(call)}/repositories/{repo.id}/issues?{urlencode({**params, "page": number})}>; rel="{rel}"'
        for rel, number in links
        if 1 <= number <= last and not (rel in ("prev", "first") and page == 1) and not (rel == "last" and page >= last)
    ]
    return answer.plus(("Link", ", ".join(there))) if there else answer


def _base(call: Call) -> str:
    return f"{call.base}/{HOST}"


def _stamp(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _repository(repo: Repo, call: Call) -> dict[str, Any]:
    return {
        "id": repo.id,
        "name": repo.name.partition("/")[2],
        "full_name": repo.name,
        "private": True,
        "html_url": f"https://github.com/{repo.name}",
        "url": f"{_base(call)}/repos/{repo.name}",
        "has_issues": repo.has_issues,
        "archived": False,
        "disabled": False,
    }


def shown(repo: Repo, issue: Issue, call: Call) -> dict[str, Any]:
    """An issue as GitHub gives it."""
    url = f"{_base(call)}/repos/{repo.name}/issues/{issue.number}"
    page = f"https://github.com/{repo.name}/{'pull' if issue.is_pull else 'issues'}/{issue.number}"
    found: dict[str, Any] = {
        "url": url,
        "repository_url": f"{_base(call)}/repos/{repo.name}",
        "labels_url": f"{url}/labels{{/name}}",
        "comments_url": f"{url}/comments",
        "events_url": f"{url}/events",
        "html_url": page,
        "id": repo.id * 1_000_000 + issue.number,
        "node_id": f"I_{repo.id}_{issue.number}",
        "number": issue.number,
        "title": issue.title,
        "user": {"login": "sandbox", "id": 1, "type": "User", "site_admin": False},
        "labels": [
            {
                "id": 1_000 + len(label),
                "node_id": f"LA_{label}",
                "url": f"{_base(call)}/repos/{repo.name}/labels/{label}",
                "name": label,
                "color": "ededed",
                "default": False,
                "description": None,
            }
            for label in issue.labels
        ],
        "state": issue.state,
        "locked": False,
        "assignee": None,
        "assignees": [],
        "milestone": None,
        "comments": 0,
        "created_at": _stamp(issue.at),
        "updated_at": _stamp(issue.updated),
        "closed_at": _stamp(issue.closed) if issue.closed else None,
        "author_association": "OWNER",
        "active_lock_reason": None,
        "body": issue.body,
        "closed_by": None,
        "state_reason": issue.reason,
    }
    return found | (
        {"pull_request": {"url": url.replace("/issues/", "/pulls/"), "html_url": page}} if issue.is_pull else {}
    )


def upstream(world: World) -> Upstream:
    """GitHub as a stand-in; reached under its own host."""
    github = GitHub()
    return Upstream(
        name="github",
        hosts=(HOST,),
        answer=github.answer,
        absent=lambda call: refusal(404, "Not Found"),
        kind=lambda call: kind_of(call)[0],
        switch=github.switch,
        view=github.view,
        reset=github.reset,
    )
