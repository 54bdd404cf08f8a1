"""A PostgreSQL of our own: found, made, started and stopped, without an account, a socket file or an engine.

Promises: it listens on 127.0.0.1 alone, asks for a password that was generated when it was made, keeps
fsync on, and runs as an ordinary user even when started by root; data whose version does not fit the binaries
is left alone. Never: no parent directory's permissions change, and no server but the one of our data
directory is ended.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import time
from pathlib import Path
from urllib.parse import quote

import psutil

from include.local import binaries as programs
from include.local import ports
from include.local.failure import LocalFailure
from include.local.files import write_private

SUPERUSER = "airflow"
_LOCALES = ("C.UTF-8", "en_US.UTF-8", "C")
_SERVER_SETTINGS = {
    "listen_addresses": ports.LOOPBACK,
    "unix_socket_directories": "",
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] %d ",
}


class Cluster:
    """One PostgreSQL server and its data, at home in `directory` (made when missing).

    Started by root below a directory that the server's user cannot reach, data and, if need be, a copy of the
    binaries go to a private directory under /var/lib; `directory/location.json` names it.
    """

    def __init__(self, directory: Path | str, settings: dict[str, str] | None = None) -> None:
        self.directory = Path(directory).absolute()
        self.port: int | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self._settings = {**_SERVER_SETTINGS, **(settings or {})}
        self._who = programs.identity(self.data)

    # --- where things are

    @property
    def location(self) -> Path:
        """Where data and server log are: `directory`, or the private place that it names."""
        note = self.directory / "location.json"
        if not note.exists():
            return self.directory
        return Path(json.loads(note.read_text(encoding="utf-8"))["location"])

    @property
    def data(self) -> Path:
        """PostgreSQL's data directory."""
        return self.location / "data"

    @property
    def log(self) -> Path:
        """The server's own log."""
        return self.location / "server.log"

    @property
    def binaries(self) -> Path:
        """The directory of psql, pg_dump and the rest, fit for this data."""
        copied = programs.copied(self.location / "binaries")
        return copied or programs.find_binaries(self._data_version())

    def _data_version(self) -> int | None:
        try:
            return int((self.data / "PG_VERSION").read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None

    @property
    def password(self) -> str:
        """The superuser's password; it stays with the data that it opens."""
        return (self.directory / "password").read_text(encoding="ascii").strip()

    def url(self, database: str = "postgres") -> str:
        """The libpq URL of one database of the running server."""
        return f"postgresql://{SUPERUSER}:{quote(self.password)}@{ports.LOOPBACK}:{self.port}/{database}"

    # --- making

    def _prepare(self) -> None:
        """Directory, place, password, data: whatever of it is still missing."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if (self.directory / "location.json").exists():
            self._check_owner()
        elif self._who.uid is not None and not self.data.exists():
            if programs.readable_by(self._who, [self.directory.parent]):
                os.chown(self.directory, self._who.uid, self._who.gid or 0)
            else:
                self._move_out()
        self._provide_binaries()
        if not (self.directory / "password").exists():
            if self.data.exists():
                raise LocalFailure(
                    f"{self.directory / 'password'} is gone, and with it the way into the database at "
                    f"{self.data}. Nothing was changed. Put the file back, or ./run reset."
                )
            write_private(self.directory / "password", secrets.token_urlsafe(24))
        if not self.data.exists():
            self._initialise()
        elif self._data_version() is None:
            raise LocalFailure(
                f"{self.data} is not a PostgreSQL data directory. Nothing was changed. Move it away, or ./run reset."
            )

    def _move_out(self) -> None:
        place = programs.private_place()
        write_private(place / "owner.json", json.dumps({"directory": str(self.directory)}))
        os.chown(place, self._who.uid or 0, self._who.gid or 0)
        write_private(self.directory / "location.json", json.dumps({"location": str(place)}))

    def _check_owner(self) -> None:
        """The place outside belongs to one directory: a copied one may not share it, a moved one keeps it."""
        try:
            note = (self.location / "owner.json").read_text(encoding="utf-8")
            owner = Path(json.loads(note)["directory"])
        except (OSError, ValueError, KeyError):
            raise LocalFailure(
                f"The database of {self.directory} should be at {self.location}, but is not there. Nothing "
                "was changed. Put it back, or ./run reset."
            ) from None
        if owner == self.directory:
            return
        if (owner / "location.json").exists():
            raise LocalFailure(
                f"{self.directory} is a copy: its database belongs to {owner}. Nothing was changed. Delete "
                f"{self.directory.parent} here to begin with an empty one."
            )
        write_private(self.location / "owner.json", json.dumps({"directory": str(self.directory)}))

    def _provide_binaries(self) -> None:
        """Copy the binaries next to the data when the server's user cannot reach the installed ones."""
        if self._who.uid is None or programs.copied(self.location / "binaries"):
            return
        installed = programs.find_binaries(self._data_version())
        if programs.reachable(installed, self._who):
            return
        programs.copy_tree(installed, self.location / "binaries")

    def _run(self, program: str, *arguments: str, timeout: float = 120) -> None:
        """One of PostgreSQL's programs, as the server's user; its words only when it fails."""
        log = self.directory / "tools.log"
        with log.open("wb") as file:
            done = subprocess.run(
                [str(self.binaries / program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=self._tool_environment(),
                timeout=timeout,
                **self._who.popen(),
            )
        if done.returncode != 0:
            words = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise LocalFailure(f"{program} failed: {' / '.join(words[-3:]) or 'no reason given'}")

    def _tool_environment(self) -> dict[str, str]:
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LC_ALL": "C",
            "PGPASSWORD": self.password,
            "PGCONNECT_TIMEOUT": "10",
        }

    def _initialise(self) -> None:
        """Run initdb into a directory that only a finished one is renamed from."""
        if shutil.disk_usage(self.location).free < 300_000_000:
            raise LocalFailure(
                f"Less than 300 MB are free at {self.location}; a database cannot be made there. Free some "
                "space and start again."
            )
        fresh = self.location / "data.new"
        key = self.location / "password.initdb"
        if fresh.exists():
            shutil.rmtree(fresh)
        fresh.mkdir(mode=0o700)
        write_private(key, self.password)
        if self._who.uid is not None:
            for path in (fresh, key):
                os.chown(path, self._who.uid, self._who.gid or 0)
        try:
            for attempt, locale in enumerate(_LOCALES, start=1):
                try:
                    self._run(
                        "initdb",
                        "-D",
                        str(fresh),
                        "-U",
                        SUPERUSER,
                        "-E",
                        "UTF8",
                        f"--locale={locale}",
                        "--auth=scram-sha-256",
                        f"--pwfile={key}",
                    )
                    break
                except LocalFailure:
                    if attempt == len(_LOCALES):
                        raise
        finally:
            key.unlink(missing_ok=True)
        fresh.replace(self.data)

    # --- running

    def start(self, port: int = 0, seconds: float = 60) -> str:
        """Start the server (make it first, if it is new) and wait until it takes connections.

        Args:
            port: where on 127.0.0.1; 0 picks a free one.
            seconds: how long recovery may take.

        Returns:
            The URL of its database `postgres`.

        Raises:
            LocalFailure: it cannot be made or does not start; the reason in words, data untouched.
        """
        self._prepare()
        self._drop_stale_pid_file()
        running = self.running()
        if running is not None:
            raise LocalFailure(
                f"The PostgreSQL of {self.directory} runs already (process {running}). ./run down stops it."
            )
        self.port = port or ports.any_free()
        options = [f"-c{name}={value}" for name, value in {**self._settings, "port": str(self.port)}.items()]
        with self.log.open("ab") as file:
            self.process = subprocess.Popen(
                [str(self.binaries / "postgres"), "-D", str(self.data), *options],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=self._tool_environment(),
                start_new_session=True,
                umask=0o077,
                **self._who.popen(),
            )
        self._wait_ready(seconds)
        return self.url()

    def _wait_ready(self, seconds: float) -> None:
        assert self.process is not None
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise LocalFailure(f"PostgreSQL did not start: {self._last_words()} (log: {self.log})")
            lines = self._pid_file()
            if lines and lines[0] == str(self.process.pid) and len(lines) > 7 and lines[7].strip() == "ready":
                return
            time.sleep(0.02)
        self.stop()
        raise LocalFailure(
            f"PostgreSQL did not get ready within {seconds:.0f} s: {self._last_words()} (log: {self.log})"
        )

    def _last_words(self) -> str:
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return "it left no log"
        telling = [line for line in lines[-20:] if "FATAL" in line or "ERROR" in line or "PANIC" in line]
        return (telling or lines or ["it said nothing"])[-1].strip()

    def _pid_file(self) -> list[str]:
        try:
            return (self.data / "postmaster.pid").read_text(encoding="ascii").splitlines()
        except OSError:
            return []

    def _lives_here(self, pid: int) -> bool:
        """Whether this process works in our data directory, which only PostgreSQL's own processes do."""
        try:
            return Path(psutil.Process(pid).cwd()) == self.data.resolve()
        except (psutil.Error, OSError):
            return False

    def running(self) -> int | None:
        """The process id of the server of our data directory, whoever started it; None when none runs."""
        lines = self._pid_file()
        pid = int(lines[0]) if lines and lines[0].isdigit() else None
        return pid if pid is not None and self._lives_here(pid) else None

    def _drop_stale_pid_file(self) -> None:
        """Remove the note of a server that vanished, once nothing at all works in its data directory.

        Left there, a number that another process bears by now would keep PostgreSQL from starting.
        """
        lines = self._pid_file()
        if lines and not any(self._lives_here(pid) for pid in psutil.pids()):
            (self.data / "postmaster.pid").unlink(missing_ok=True)

    def stop(self, seconds: float = 60) -> None:
        """Stop the server of this data directory, if one runs, in good order; after `seconds` without."""
        pid = self.process.pid if self.process and self.process.poll() is None else self.running()
        for request, patience in ((signal.SIGINT, seconds), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 10.0)):
            if pid is None or self._gone_after(pid, request, patience):
                break
        self.process = None

    def _gone_after(self, pid: int, request: signal.Signals, patience: float) -> bool:
        try:
            os.kill(pid, request)
        except ProcessLookupError:
            return True
        end = time.monotonic() + patience
        while time.monotonic() < end:
            if self.process is not None and self.process.pid == pid:
                if self.process.poll() is not None:
                    return True
            elif not self._lives_here(pid):
                return True
            time.sleep(0.02)
        return False

    def create_database(self, name: str, template: str | None = None) -> str:
        """Make a database, as a copy of `template` when one is named (nobody may be connected to it).

        Returns:
            The new database's URL.
        """
        source = ["-T", template] if template else []
        self._run("createdb", *self._client(), *source, name)
        return self.url(name)

    def drop_database(self, name: str) -> None:
        """Remove a database, ending whatever is still connected to it."""
        self._run("dropdb", *self._client(), "--if-exists", "-f", name)

    def _client(self) -> list[str]:
        return ["-h", ports.LOOPBACK, "-p", str(self.port), "-U", SUPERUSER]

    def remove(self) -> None:
        """Stop the server and delete all that this class made: data, binaries, password and `directory`."""
        self.stop()
        if self.location != self.directory:
            self._check_owner()
            shutil.rmtree(self.location)
        shutil.rmtree(self.directory, ignore_errors=True)
