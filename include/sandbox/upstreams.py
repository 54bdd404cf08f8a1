"""The stand-ins: one line each.

Promises: what is listed here is played; a new stand-in is a module with a function `upstream(world)` and a
line. Never: anything else knows the stand-ins by name.
"""

from __future__ import annotations

from collections.abc import Callable

from include.sandbox import alpaca, dart, ecos, edgar, finra, fred, github, hub, kind, krx, llm, sec, slack
from include.sandbox.exchange import Upstream, World

# Where data comes from: recordings take the place of these.
SOURCES: tuple[Callable[[World], Upstream], ...] = (
    finra.upstream,
    alpaca.upstream,
    fred.upstream,
    krx.upstream,
    sec.upstream,
    edgar.upstream,
    kind.upstream,
    ecos.upstream,
    dart.upstream,
)

# Where results go: never recorded.
SERVICES: tuple[Callable[[World], Upstream], ...] = (hub.upstream, llm.upstream, slack.upstream, github.upstream)
