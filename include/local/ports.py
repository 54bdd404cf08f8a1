"""Ports on loopback: the usual one when it is free, otherwise another.

Promises: a port that this module names was free on 127.0.0.1 a moment ago. Never: it binds another address.
"""

from __future__ import annotations

import socket
from collections.abc import Collection

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


def any_free(avoid: Collection[int] = ()) -> int:
    """A free port that the system picks, none of `avoid`."""
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind((LOOPBACK, 0))
            port = int(probe.getsockname()[1])
        if port not in avoid:
            return port


def choose(preferred: int, avoid: Collection[int] = (), tries: int = 20) -> int:
    """`preferred` when it is free, else the first free one of the next `tries`, else any free port."""
    for port in range(preferred, preferred + tries):
        if port not in avoid and is_free(port):
            return port
    return any_free(avoid)
