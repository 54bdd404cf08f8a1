"""What must not stand in a tracked file: places of one machine, secrets, registries.

Promises: pure functions over a path and a text; the patterns are written so that they do not find themselves.
"""

from __future__ import annotations

import re

from tests.house.finding import Finding

_PLACES = re.compile(r"(?<![\w.$}<>])/(?:wor[k]|roo[t]|hom[e]/\w+|User[s]/\w+|var/folder[s]|tm[p]/\w+)(?:/|\b)")
_REGISTRIES = re.compile(r"^\s*-{1,2}(?:i\b|index-url|extra-index-url|find-links|trusted-host)", re.MULTILINE)
_SECRETS = {
    "a Hugging Face token": r"\bhf_[A-Za-z0-9]{20,}",
    "a Slack webhook": r"hooks\.slack\.com/services/T[A-Z0-9]{7,}/B[A-Z0-9]{7,}/\w{16,}",
    "a Slack token": r"\bxox[abpr]-[\w-]{10,}",
    "an OpenAI key": r"\bsk-[A-Za-z0-9_-]{20,}",
    "a GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,})",
    "an AWS key": r"\bAKIA[0-9A-Z]{16}\b",
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    "a signed token": r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}",
}
_NEVER = re.compile(
    r"(^|/)(\.daybook|\.venv|\.env|secrets\.json|passwords\.json|connections\.env|[^/]+\.(pem|key|p12|db|pyc))(/|$)"
)


def places(path: str, text: str) -> list[Finding]:
    """Paths that exist on one machine only."""
    return [
        Finding(path, line, "place", f"a path of one machine: {found.group(0)}")
        for line, row in enumerate(text.splitlines(), start=1)
        for found in _PLACES.finditer(row)
    ]


def registries(path: str, text: str) -> list[Finding]:
    """Requirement files that name where packages come from: that is the user's to say."""
    if not (path.startswith("requirements") and path.endswith((".in", ".txt"))):
        return []
    return [Finding(path, 1, "registry", found.group(0).strip()) for found in _REGISTRIES.finditer(text)]


def secrets(path: str, text: str) -> list[Finding]:
    """Texts in the shape of a real secret; an example must not look like one. The secret is not repeated."""
    return [
        Finding(path, text.count("\n", 0, found.start()) + 1, "secret", f"this looks like {what}")
        for what, pattern in _SECRETS.items()
        for found in re.finditer(pattern, text)
    ]


def strangers(paths: tuple[str, ...]) -> list[Finding]:
    """Files that belong to an installation and never to the repository."""
    return [
        Finding(path, 1, "stranger", "state or secrets of an installation") for path in paths if _NEVER.search(path)
    ]
