"""The secrets of one installation: made at first use, kept for their owner alone.

Promises: every process of the stack gets the same ones, and they survive restarts. Never: a broken file is
replaced, because what was encrypted with its key would be lost.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from include.local.failure import LocalFailure
from include.local.files import write_private

USERS = ("admin", "viewer")


@dataclass(frozen=True)
class Keys:
    """Airflow's keys: `fernet` encrypts what the UI saves, `jwt` signs tokens, `api` signs sessions."""

    fernet: str = field(repr=False)
    jwt: str = field(repr=False)
    api: str = field(repr=False)

    @property
    def redis(self) -> str:
        """The password of the stack's own Redis and object store: made of another secret, so that none more is kept."""
        return hashlib.sha256(f"redis {self.jwt}".encode()).hexdigest()


def _new() -> Keys:
    return Keys(
        fernet=base64.urlsafe_b64encode(secrets.token_bytes(32)).decode("ascii"),
        jwt=secrets.token_urlsafe(48),
        api=secrets.token_urlsafe(32),
    )


def keys(directory: Path) -> Keys:
    """The installation's keys from `secrets.json`, made now if there are none.

    Raises:
        LocalFailure: the file is there and cannot be used; it is left as it is.
    """
    path = directory / "secrets.json"
    if not path.exists():
        write_private(path, json.dumps(asdict(_new())))
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        return Keys(**{one.name: str(read[one.name]) for one in fields(Keys)})
    except (OSError, ValueError, KeyError, TypeError):
        raise LocalFailure(
            f"{path} cannot be read. It was left as it is, because connections made in the UI are encrypted "
            "with its key. Restore it; or delete it and enter those connections again."
        ) from None


def passwords(directory: Path) -> dict[str, str]:
    """The passwords of the fixed local users from `passwords.json`, which Airflow reads too; made if missing.

    Raises:
        LocalFailure: the file is there and cannot be used; it is left as it is.
    """
    path = directory / "passwords.json"
    if not path.exists():
        write_private(path, json.dumps({user: secrets.token_urlsafe(9) for user in USERS}))
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        return {user: str(read[user]) for user in USERS}
    except (OSError, ValueError, KeyError, TypeError):
        raise LocalFailure(
            f"{path} cannot be read or lacks one of {', '.join(USERS)}. It was left as it is. Delete it and "
            "new passwords are made at the next start."
        ) from None
