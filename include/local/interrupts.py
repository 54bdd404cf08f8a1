"""Ctrl-C, TERM and a closed terminal, as a request that is looked at where stopping is possible.

Promises: a request never cuts through a step half-way; whoever waits is woken at once by it, or by the end of
a child. Never: it stops anything itself.
"""

from __future__ import annotations

import select
import signal
import socket
from types import FrameType, TracebackType


class Stopped(Exception):
    """The operator asked to stop while something was being started."""


class Interrupts:
    """While in use (`with`), INT, TERM and HUP are counted in `asked`, and `wait` returns early for them."""

    def __init__(self) -> None:
        self.asked = 0
        self._before: dict[signal.Signals, object] = {}
        self._ear, self._mouth = socket.socketpair()
        for end in (self._ear, self._mouth):
            end.setblocking(False)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked += 1

    def __enter__(self) -> Interrupts:
        """Take the signals over."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # Under nohup a closed terminal is meant to be ignored.
            if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue
            self._before[number] = signal.signal(number, self._ask)
        self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._mouth.fileno(), warn_on_full_buffer=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the signals back."""
        signal.set_wakeup_fd(-1)
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._ear.close()
        self._mouth.close()

    def wait(self, seconds: float) -> None:
        """Wait for a signal (a child's end is one too), at most `seconds`."""
        if select.select([self._ear], [], [], seconds)[0]:
            self._ear.recv(4096)

    def check(self) -> None:
        """Raise if stopping was asked for.

        Raises:
            Stopped: it was.
        """
        if self.asked:
            raise Stopped
