"""A squash: one commit in the place of a repository's long history, while nobody publishes.

Promises: it is done under the publisher's lease, so that no commit of ours falls into it; every file stays as it is,
and the next publication compares all of them. Repeating it does no harm. Never: another repository than the named one,
which must be the connection's.
"""

from __future__ import annotations

import threading

from include.engine import audit
from include.engine.verdict import kst
from include.outputs.hub import Hub, session
from include.outputs.lease import NotClaimed, claim, give_back_quietly, renewed
from include.outputs.ledger import Ledger
from include.outputs.publisher import LEASE


class SquashRefused(Exception):
    """The history was not squashed; the text says why and what to do."""


def squash(url: str, hub: Hub, repository: str, who: str) -> None:
    """Squash the history of the repository that everything is published to, and count its commits anew.

    Args:
        url: libpq address of the warehouse.
        repository: its name once more, as what is asked for cannot be undone.
        who: who asks for it; kept.

    Raises:
        SquashRefused: it is another repository, nothing was sent to it, or somebody publishes.
        HubTrouble: the Hub does not comply; whether it squashed is not known, and repeating it does no harm.
    """
    if repository != hub.repository:
        raise SquashRefused(
            f"The connection huggingface names {hub.repository}, not {repository}. Nothing was changed."
        )
    lease = claim(url, LEASE, f"squash by {who}")
    if isinstance(lease, NotClaimed):
        why = f"{lease.holder} publishes" if lease.holder else f"publication is put off ({lease.reason})"
        raise SquashRefused(f"{why} until {kst(lease.until)}. Nothing was changed; ask again then.")
    try:
        with renewed(lease), session(hub, Ledger(url, repository, threading.Event())) as speaking:
            speaking.squash(f"History squashed by {who}; every file is as it was")
            lease.check()
        if not audit.squashed(url, repository, who):
            raise SquashRefused(f"{repository} is squashed, and nothing of ours was ever sent to it.")
    finally:
        give_back_quietly(lease)
