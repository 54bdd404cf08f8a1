"""From the connection `llm` and the settings to the model's `Backend`.

Promises: what the connection says goes first, then the settings of the same meaning; what is missing is named in words.
Never: a secret is in a message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from include.analysis.model import Backend
from include.settings import Analysis

CONNECTION = "llm"
# Where the sandbox has the model, and what it is called there.
SANDBOX_PATH, SANDBOX_MODEL = "llm.sandbox.invalid/v1", "stand-in-8b"


class NoModel(Exception):
    """Nobody said where the model is; the text says where to say it."""


def backend(
    wishes: Analysis,
    *,
    host: str = "",
    password: str = "",
    extra: Mapping[str, Any] | None = None,
    sandbox_url: str | None = None,
) -> Backend:
    """Return how to reach the model.

    Args:
        wishes: the settings.
        host: the connection's address with its scheme, up to and with the version, e.g. https://llm.example/v1.
        password: the key of the API, where it wants one.
        extra: `model`, `cf_access_client_id`, `cf_access_client_secret`, `takes_ids`.
        sandbox_url: where the sandbox stands in for all upstreams.

    Raises:
        NoModel: no address, or no model is named.
    """
    said = extra or {}
    url, model = host.rstrip("/") or wishes.url, str(said.get("model") or wishes.model)
    if sandbox_url:
        url, model = f"{sandbox_url}/{SANDBOX_PATH}", model or SANDBOX_MODEL
    if not url or not model:
        lacking = "address" if not url else "name"
        raise NoModel(
            f"The language model has no {lacking}. Nothing was asked, and what waits keeps its place. Set "
            "LLM_BASE_URL and LLM_MODEL, or connection llm: its host with the version (https://…/v1), extra.model, the "
            "key as password."
        )
    access = {
        "CF-Access-Client-Id": str(said.get("cf_access_client_id") or wishes.access_id),
        "CF-Access-Client-Secret": str(said.get("cf_access_client_secret") or wishes.access_secret),
    }
    return Backend(
        url,
        model,
        password,
        {name: value for name, value in access.items() if value},
        wishes.timeout,
        bool(said.get("takes_ids", wishes.own_ids)),
    )
