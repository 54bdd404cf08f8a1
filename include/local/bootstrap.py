"""Making .venv: the one part of the launcher that any Python must be able to run.

Promises: .venv counts as made only when its note, written last, holds the hash of requirements.txt; a
half-made one of ours is made anew; one that was made by hand is used if it holds everything, and otherwise
left alone. Never: anything but the standard library is imported, and another directory than .venv is deleted.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

OLDEST, TOO_NEW = (3, 11), (3, 15)
NOTE = "daybook.json"
ROOM = 1_500_000_000
ANEW = "What was begun is made anew next time."
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)\s*(?:;\s*(.*))?$")


class CannotMake(Exception):
    """`.venv` cannot be made; the text says why and what to do."""


def _hash(root: Path) -> str:
    try:
        return hashlib.sha256((root / "requirements.txt").read_bytes()).hexdigest()
    except OSError as error:
        raise CannotMake(
            f"{root / 'requirements.txt'} cannot be read ({error.strerror}). Restore the checkout."
        ) from error


def _note(venv: Path) -> dict[str, str] | None:
    """What we wrote into `.venv`; None for one that is not ours."""
    try:
        read = json.loads((venv / NOTE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return read if isinstance(read, dict) else None


def _write(venv: Path, **note: str) -> None:
    part = venv / f"{NOTE}.part"
    part.write_text(json.dumps(note), encoding="utf-8")
    part.replace(venv / NOTE)


def _works(venv: Path) -> bool:
    python = venv / "bin" / "python"
    try:
        return subprocess.run([str(python), "-c", ""], capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def missing(root: Path, file: str = "requirements.txt") -> list[str]:
    """Packages that a file pins and the Python that runs this does not have so; without markers only."""
    lacking = []
    for line in (root / file).read_text(encoding="utf-8").splitlines():
        found = _PIN.match(line)
        if found is None or found.group(3):
            continue
        try:
            version = importlib.metadata.version(found.group(1))
        except importlib.metadata.PackageNotFoundError:
            version = None
        if version != found.group(2):
            lacking.append(f"{found.group(1)}=={found.group(2)}")
    return lacking


def complaint(root: Path) -> str | None:
    """What is wrong with `.venv`, seen from inside it; None when nothing is."""
    note = _note(root / ".venv")
    lacking = missing(root)
    if lacking:
        return f".venv lacks {len(lacking)} packages of requirements.txt ({', '.join(lacking[:3])}); start ./run again"
    if note is not None and note.get("requirements") != _hash(root):
        return "requirements.txt changed since .venv was made; start ./run again"
    return None


# --- making


def ensure(root: Path) -> Path:
    """Make sure that `.venv` is there and complete, and return its Python.

    Raises:
        CannotMake: it cannot be made, or one that is not ours is in the way.
    """
    venv = root / ".venv"
    wanted = _hash(root)
    note = _note(venv)
    if note and note.get("requirements") == wanted and _works(venv):
        return venv / "bin" / "python"
    _check_place(root)
    handle = os.open(root, os.O_RDONLY)
    try:
        # One at a time: two ./run at once in a fresh checkout.
        fcntl.flock(handle, fcntl.LOCK_EX)
        note = _note(venv)
        if note and note.get("requirements") == wanted and _works(venv):
            return venv / "bin" / "python"
        by_hand = note is None or note.get("made") == "by hand"
        if venv.exists() and by_hand and any(venv.iterdir()):
            _adopt(root, venv, wanted)
        elif note and note.get("requirements") and _works(venv):
            say("requirements.txt changed; .venv is brought up to date")
            _install(root, venv, wanted)
        else:
            _make(root, venv, wanted)
    finally:
        os.close(handle)
    return venv / "bin" / "python"


def add(root: Path, file: str) -> None:
    """Install what a further file pins into `.venv`, where it is not there yet.

    Such a file agrees with requirements.txt wherever both name a pin, so nothing that is there changes.

    Raises:
        CannotMake: it cannot be installed; `.venv` stays as it was.
    """
    lacking = missing(root, file)
    if lacking:
        say(f"{file}: {len(lacking)} packages are not in .venv ({', '.join(lacking[:3])}); installing them, once")
        _run(_pip(root / ".venv", root / file), f"the packages of {file}", len(lacking), ".venv works as before.")


def _check_place(root: Path) -> None:
    if not os.access(root, os.W_OK):
        raise CannotMake(
            f"{root} cannot be written to by you, so .venv cannot be made there. Use a checkout of your own."
        )
    free = shutil.disk_usage(root).free
    if free < ROOM and not (root / ".venv").exists():
        raise CannotMake(
            f"Only {free / 1e9:.1f} GB are free at {root}; the packages need {ROOM / 1e9:.1f}. Make room and try again."
        )


def _adopt(root: Path, venv: Path, wanted: str) -> None:
    """Use a `.venv` that somebody made by hand, if everything is in it."""
    if _works(venv):
        command = [str(venv / "bin" / "python"), "-I", str(Path(__file__).resolve()), "--missing", str(root)]
        answer = subprocess.run(command, capture_output=True, text=True)
        if answer.returncode == 0:
            _write(venv, requirements=wanted, made="by hand")
            return
    raise CannotMake(
        f"{venv} was not made by ./run and does not hold what requirements.txt asks for. It was left as it "
        "is. Move it away, or install the requirements into it: .venv/bin/pip install --no-deps -r requirements.txt"
    )


def _make(root: Path, venv: Path, wanted: str) -> None:
    if venv.is_symlink():
        raise CannotMake(
            f"{venv} is a link to {os.readlink(venv)}, where no finished .venv of this checkout is. It was left as it "
            "is. Remove the link and start again, or let it point to one that works."
        )
    say(f"making .venv with Python {'.'.join(map(str, sys.version_info[:3]))} (once; a few minutes)")
    if venv.exists():
        say("the one that is there was not finished and is made anew")
        shutil.rmtree(venv)
    try:
        venv.mkdir()
        _write(venv, made="not finished")
        _run([sys.executable, "-m", "venv", str(venv)], "the virtual environment")
    except OSError as error:
        raise CannotMake(f"{venv} cannot be made: {error.strerror}. What was begun is made anew next time.") from error
    _install(root, venv, wanted)


def _install(root: Path, venv: Path, wanted: str) -> None:
    _write(venv, made="not finished")
    lines = (root / "requirements.txt").read_text(encoding="utf-8").splitlines()
    total = sum(1 for line in lines if _PIN.match(line))
    _run(_pip(venv, root / "requirements.txt"), "the packages", total)
    _write(venv, requirements=wanted, made="by ./run")
    say("the packages are installed")


def _pip(venv: Path, requirements: Path) -> list[str]:
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--no-deps", "--no-input", "--progress-bar=off"]
    return [*pip, "--disable-pip-version-check", "-r", str(requirements)]


def _run(command: list[str], what: str, total: int = 0, after: str = ANEW) -> None:
    """Run one step of the installation; show how far it is, and end it whole when we are ended.

    `after` says what a failure leaves behind.
    """
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", start_new_session=True,
    )  # fmt: skip

    def end(number: int, frame: object) -> None:
        # As Ctrl-C, upon which pip removes what it has unpacked.
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        sys.exit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    words: list[str] = []
    count, told, fetching = 0, time.monotonic(), total > 0
    assert process.stdout is not None
    try:
        for line in process.stdout:
            words = [*words[-40:], line.rstrip()]
            count += line.startswith("Collecting ")
            if line.startswith("Installing collected packages"):
                fetching = False
                say(f"installing {total} packages")
            elif fetching and time.monotonic() - told > 10:
                told = time.monotonic()
                say(f"fetching packages: {count} of about {total}")
        code = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if code != 0:
        raise CannotMake(_reason(what, words, after))


def _reason(what: str, words: list[str], after: str = ANEW) -> str:
    text = "\n".join(words)
    if "No space left on device" in text:
        return f"The disk is full while installing {what}. Make room and start again. {after}"
    if "Permission denied" in text:
        return f"Something in .venv cannot be written to. Give yourself the right, and start again. {after}"
    if re.search(r"Connection|NameResolution|Temporary failure|Max retries|ProxyError|SSLError|timed out", text):
        return (
            "The package index cannot be reached. Connect to the network, or name a mirror that you can "
            f"reach in PIP_INDEX_URL, and start again. {after}"
        )
    if "ensurepip" in text:
        return "This Python cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv. " + after
    errors = [line for line in words if "ERROR" in line or "error:" in line] or words[-2:]
    return f"Installing {what} failed: {' / '.join(errors[-2:])}. {after}"


def say(text: str) -> None:
    """One line of progress, apart from what the programs after this print."""
    print(f"run: {text}", file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:  # noqa: RET503 (the last line does not return)
    """Make `.venv` if needed and become the launcher, or, asked with --missing, look at this one."""
    if arguments[:1] == ["--missing"]:
        lacking = missing(Path(arguments[1]))
        print("\n".join(lacking))
        return 1 if lacking else 0
    root = Path(__file__).resolve().parents[2]
    try:
        python = ensure(root)
    except CannotMake as reason:
        say(str(reason))
        return 1
    # -P: this checkout is started, whatever lies in the directory that ./run is called from.
    os.execv(python, [str(python), "-P", "-m", "include.local", *arguments])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
