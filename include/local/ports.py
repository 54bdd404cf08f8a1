"""Ports on loopback: the usual one when it is free, otherwise another.

Promises: a port that is taken here was free on 127.0.0.1 a moment ago, and no other stack on this machine is given
it before its server listens. Never: another address is bound.
"""

from __future__ import annotations

import socket
import sys

import psutil

LOOPBACK = "127.0.0.1"


def is_free(port: int) -> bool:
    """Whether a server could listen on 127.0.0.1:`port` now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: connections of the last run that are still closing do not make a port busy.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
            probe.listen(1)
        except (OSError, OverflowError):
            return False
        return True


def any_free() -> int:
    """A free port that the system picks."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def listens(pid: int, port: int) -> bool:
    """Whether this process of ours is the one that listens on 127.0.0.1:`port`."""
    try:
        connections = psutil.Process(pid).net_connections(kind="tcp")
    except psutil.Error:
        return False
    return any(one.status == psutil.CONN_LISTEN and one.laddr == (LOOPBACK, port) for one in connections)


class Ports:
    """The ports of one stack, held for it from when they are chosen until `release` or the end of the process.

    A server needs half a minute before it listens, in which another stack that starts would find its port free.
    """

    def __init__(self) -> None:
        self._held: dict[int, socket.socket] = {}

    def take(self, preferred: int, tries: int = 20) -> int:
        """Take `preferred` when it is free, else the first free one of the next `tries`, else any."""
        for port in range(preferred, min(preferred + tries, 65_536)):
            if self._take(port):
                return port
        while not self._take(port := any_free()):
            continue
        return port

    def _take(self, port: int) -> bool:
        # A name in the kernel that goes away with its holder; it exists on Linux only.
        hold = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            if sys.platform == "linux":
                hold.bind(f"\0daybook-port-{port}")
            if port not in self._held and is_free(port):
                self._held[port] = hold
                return True
        except OSError:
            hold.close()
            return False
        hold.close()
        return False

    def release(self) -> None:
        """Give all of them back."""
        for hold in self._held.values():
            hold.close()
        self._held.clear()
