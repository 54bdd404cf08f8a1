"""How an upstream is reached: base URL, secrets, keys, and how many requests a day each key has.

Promises: what must not be seen is in no representation of anything here. It is part of the contract, which gives it
on. Never: a default for a secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Quota:
    """How many requests each key has a day; the upstream's day begins at midnight in `timezone`.

    Of these, `kept_for_polls` are left by backfills, so that a morning never finds the key used up by the past.
    """

    requests: int
    timezone: str
    kept_for_polls: int = 0


class QuotaUsedUp(Exception):
    """An upstream says, in answer to `classify`, that the key has no requests left today."""


@dataclass(frozen=True)
class Key:
    """One of the keys of a connection: the fingerprint, which may be shown, and how the key is sent.

    `in_path` stands in the address where the request has `{key}`.
    """

    fingerprint: str
    params: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    in_path: str = field(default="", repr=False)


@dataclass(frozen=True)
class Credentials:
    """How to reach an upstream: base URL, secrets by name, and where the sandbox stands in for it.

    `base_url` replaces `default_host` (the source's first host) where the connection names another one.
    `secrets` are values that must never be logged or stored; they are masked wherever they would appear. `keys` are
    used one after the other, the next one when the one before has no requests left.
    """

    base_url: str
    default_host: str = ""
    user_agent: str = "Daybook"
    headers: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    sandbox_url: str | None = None
    keys: tuple[Key, ...] = ()

    def __repr__(self) -> str:
        """Never show what must not be seen."""
        return f"Credentials(base_url={self.base_url!r}, secrets={len(self.secrets)} hidden)"
