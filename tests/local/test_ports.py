"""Ports: the usual one or another, always on loopback, never promised twice."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from include.local import ports
from include.local.ports import Ports
from include.settings import ROOT


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as server:
        server.bind((ports.LOOPBACK, 0))
        server.listen()
        yield server.getsockname()[1]


@pytest.fixture
def mine() -> Iterator[Ports]:
    made = Ports()
    yield made
    made.release()


def test_a_taken_port_is_not_free_and_another_is_chosen(taken: int, mine: Ports) -> None:
    assert not ports.is_free(taken)
    assert mine.take(taken) != taken


def test_a_free_port_is_kept(mine: Ports) -> None:
    port = ports.any_free()
    assert mine.take(port) == port


def test_no_port_is_promised_twice(mine: Ports) -> None:
    port = ports.any_free()
    assert mine.take(port) == port
    assert mine.take(port) != port


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel keeps such names on Linux only")
def test_two_stacks_that_start_at_once_are_given_different_ports_before_either_listens(mine: Ports) -> None:
    port = mine.take(ports.any_free())
    code = f"from include.local.ports import Ports; print(Ports().take({port}))"
    other = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(other.stdout) != port
    mine.release()
    again = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(again.stdout) == port, "it is free again when its holder gave it back"


def test_a_server_of_somebody_else_does_not_pass_for_ours(taken: int) -> None:
    assert ports.listens(os.getpid(), taken)
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert not ports.listens(other.pid, taken)
    finally:
        other.kill()
        other.communicate()


def test_a_port_that_does_not_exist_is_not_free_and_never_taken(mine: Ports) -> None:
    assert not ports.is_free(70_000)
    assert mine.take(65_535, tries=5) <= 65_535
