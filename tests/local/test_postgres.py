"""The embedded PostgreSQL: safe defaults, sturdy against what a machine does to it."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from include.local import binaries
from include.local.failure import LocalFailure
from include.local.postgres import Cluster

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has to hand the server to another user")


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory with a space in its name that other users may pass through."""
    with tempfile.TemporaryDirectory(prefix="day book ") as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.fixture
def cluster(home: Path) -> Iterator[Cluster]:
    made = Cluster(home / "postgres")
    yield made
    made.remove()


def setting(url: str, name: str) -> str:
    with psycopg.connect(url) as connection:
        row = connection.execute("select current_setting(%s)", (name,)).fetchone()
    assert row is not None
    return str(row[0])


def test_the_server_keeps_fsync_and_listens_on_loopback_alone(cluster: Cluster) -> None:
    """One of its own: that of the test session is told to forget about the disk."""
    cluster.start()
    url = cluster.url()
    assert setting(url, "fsync") == "on"
    assert setting(url, "full_page_writes") == "on"
    assert setting(url, "listen_addresses") == "127.0.0.1"
    assert setting(url, "unix_socket_directories") == ""
    pid = cluster.running()
    assert pid is not None
    listening = [one for one in psutil.Process(pid).net_connections() if one.status == psutil.CONN_LISTEN]
    assert {one.laddr.ip for one in listening} == {"127.0.0.1"}


def test_a_client_without_the_password_is_refused(postgres: Cluster) -> None:
    url = postgres.url().replace(postgres.password, "guess")
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(url)


def test_the_server_never_runs_as_root(postgres: Cluster) -> None:
    pid = postgres.running()
    assert pid is not None
    assert psutil.Process(pid).uids().effective != 0


def test_data_survive_a_restart_in_a_path_with_spaces(cluster: Cluster) -> None:
    cluster.start()
    with psycopg.connect(cluster.create_database("kept")) as connection:
        connection.execute("create table t as select 7 as n")
    cluster.stop()
    cluster.start()
    with psycopg.connect(cluster.url("kept")) as connection:
        assert connection.execute("select n from t").fetchone() == (7,)


def test_a_second_start_of_the_same_data_is_refused(cluster: Cluster) -> None:
    cluster.start()
    with pytest.raises(LocalFailure, match="runs already"):
        Cluster(cluster.directory).start()
    assert cluster.running() is not None


def test_a_server_whose_owner_vanished_is_found_and_stopped(cluster: Cluster) -> None:
    cluster.start()
    other = Cluster(cluster.directory)
    other.stop()
    assert cluster.running() is None


def test_a_killed_server_starts_again_although_its_number_went_to_somebody_else(cluster: Cluster) -> None:
    cluster.start()
    pid = cluster.running()
    assert pid is not None
    assert cluster.process is not None
    children = psutil.Process(pid).children()
    os.kill(pid, signal.SIGKILL)
    cluster.process.wait()
    psutil.wait_procs(children, timeout=20)
    note = cluster.data / "postmaster.pid"
    lines = note.read_text().splitlines()
    note.write_text("\n".join([str(os.getpid()), *lines[1:]]))
    assert cluster.running() is None
    cluster.start()
    assert cluster.running() is not None


def test_a_busy_port_is_told_and_the_data_left_alone(cluster: Cluster) -> None:
    cluster.start()
    cluster.stop()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(LocalFailure, match="did not start"):
            cluster.start(port=taken.getsockname()[1])
    cluster.start()


def test_a_half_made_data_directory_is_made_anew(cluster: Cluster) -> None:
    half = cluster.directory / "data.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18")
    cluster.start()
    assert not half.exists()


def test_foreign_data_are_refused_and_left_alone(cluster: Cluster) -> None:
    cluster.data.mkdir(parents=True)
    (cluster.data / "diary.txt").write_text("mine")
    (cluster.directory / "password").write_text("x")
    with pytest.raises(LocalFailure, match="not a PostgreSQL data directory"):
        cluster.start()
    assert (cluster.data / "diary.txt").read_text() == "mine"


def test_data_of_another_version_are_refused_and_left_alone(cluster: Cluster) -> None:
    cluster.data.mkdir(parents=True)
    (cluster.data / "PG_VERSION").write_text("12")
    (cluster.directory / "password").write_text("x")
    with pytest.raises(LocalFailure, match="made by PostgreSQL 12"):
        cluster.start()
    assert (cluster.data / "PG_VERSION").read_text() == "12"


def test_data_without_their_password_are_refused(cluster: Cluster) -> None:
    cluster.start()
    cluster.stop()
    (cluster.directory / "password").rename(cluster.directory / "aside")
    with pytest.raises(LocalFailure, match="password is gone"):
        cluster.start()
    (cluster.directory / "aside").rename(cluster.directory / "password")
    cluster.start()


def test_the_password_is_readable_for_its_owner_alone(postgres: Cluster) -> None:
    mode = (postgres.directory / "password").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600


@as_root
def test_below_a_closed_directory_root_keeps_the_data_elsewhere_and_opens_nothing(home: Path) -> None:
    home.chmod(0o700)
    cluster = Cluster(home / "postgres")
    try:
        cluster.start()
        place = cluster.location
        assert place.parent in binaries.ROOT_PLACES
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
        cluster.stop()
        cluster.start()
    finally:
        cluster.remove()
    assert not place.exists()


@as_root
def test_a_copied_state_directory_does_not_share_the_database_and_a_moved_one_keeps_it(home: Path) -> None:
    home.chmod(0o700)
    cluster = Cluster(home / "postgres")
    cluster.start()
    cluster.stop()
    copy = Cluster(home / "copy")
    copy.directory.mkdir()
    for name in ("location.json", "password"):
        (copy.directory / name).write_text((cluster.directory / name).read_text())
    with pytest.raises(LocalFailure, match="is a copy"):
        copy.start()
    (cluster.directory / "location.json").unlink()
    try:
        copy.start()
        assert json.loads((copy.location / "owner.json").read_text())["directory"] == str(copy.directory)
    finally:
        copy.remove()


@as_root
def test_binaries_that_the_servers_user_cannot_reach_are_copied(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = home / "closed"
    programs = binaries.copy_tree(binaries.find_binaries(), closed)
    closed.chmod(0o700)
    monkeypatch.setattr(binaries, "find_binaries", lambda major=None: programs)
    cluster = Cluster(home / "postgres")
    try:
        cluster.start()
        assert cluster.location / "binaries" in cluster.binaries.parents
    finally:
        cluster.remove()
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


def test_debians_binaries_do_when_the_wheel_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/usr/lib/postgresql").is_dir():
        pytest.skip("no Debian PostgreSQL on this machine")
    monkeypatch.setattr(binaries.importlib.util, "find_spec", lambda name: None)
    assert str(binaries.find_binaries()).startswith("/usr/lib/postgresql/")


def test_no_binaries_at_all_is_a_sentence_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "major_version", lambda path: None)
    with pytest.raises(LocalFailure, match="DATABASE_URL"):
        binaries.find_binaries()


@as_root
def test_others_pass_through_the_place_of_roots_databases_under_a_private_umask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = tmp_path / "daybook"
    monkeypatch.setattr(binaries, "ROOT_PLACES", (parent,))
    before = os.umask(0o077)
    try:
        place = binaries.private_place()
    finally:
        os.umask(before)
    assert (stat.S_IMODE(parent.stat().st_mode), stat.S_IMODE(place.stat().st_mode)) == (0o711, 0o700)
