"""The language model, reached through the Responses API by its own client.

Promises: every request has a timeout and is sent once (the client's own retries are off, as a lost answer would make
two jobs); what the server said is told apart: a job that waits, one that ended well or not, one that it does not
know, and a server that cannot be asked now. Never: a proxy of the environment is used, and no key or body is in an
error.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from include.analysis.prompts import MOST_TOKENS, SCHEMA, Prompt

# What the servers between us and the model say when it is away, or has no room, or knows us no more: none of it is
# about a single filing.
_AWAY = frozenset({401, 403, 408, 425, 429})
# Said of a submit alone, as of a job it means that the server does not know it.
_AWAY_AT_SUBMIT = _AWAY | {404, 405}
# Gateways say so of a server that may have got the request and only its answer did not come back.
_MAY_HAVE_IT = frozenset({502, 504, 520, 524})
# From here on no server of the model's speaks, but a gateway (52x and 530 are Cloudflare's); below 400 it is a page to
# log in at.
_FIRST_OF_GATEWAYS, _FIRST_OF_ERRORS = 502, 400


@dataclass(frozen=True)
class Backend:
    """How to reach the model.

    `own_ids` says that it takes our name for an answer (`request_id`, as vLLM does); a backend that does not may make a
    second job where its answer to the first was lost on the way.
    """

    url: str
    model: str
    key: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: timedelta = timedelta(seconds=30)
    own_ids: bool = True


class Away(Exception):
    """The server cannot be asked now; `was_sent`: it may have got the request all the same."""

    def __init__(self, why: str, *, was_sent: bool) -> None:
        super().__init__(why)
        self.was_sent = was_sent


class Rejected(Exception):
    """The server did not take the job; the text says why."""


class TooSlow(Exception):
    """The server did not answer in time; it may have the job."""


@dataclass(frozen=True)
class Said:
    """What the server says of a job: its state, the text where it is completed, and why where it ended otherwise."""

    state: Literal["waiting", "completed", "incomplete", "failed", "lost", "away"]
    text: str = ""
    model: str = ""
    why: str = ""


class Submitter:
    """Gives jobs to the model; one for each worker."""

    def __init__(self, backend: Backend) -> None:
        import openai

        self._backend = backend
        self._client = openai.OpenAI(
            **_arguments(backend), http_client=openai.DefaultHttpxClient(trust_env=False, follow_redirects=False)
        )

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def submit(self, name: str, prompt: Prompt, within: float) -> str:
        """Give a job to the model and return the name of its answer.

        Args:
            name: the name that the answer shall have, where the backend takes one.
            prompt: what is asked.
            within: seconds that may pass.

        Raises:
            Away: the server cannot be asked now.
            TooSlow: it did not answer within the time.
            Rejected: it did not take the job.
        """
        import openai

        timeout = max(min(within, self._backend.timeout.total_seconds()), 0.1)
        try:
            response = self._client.responses.create(
                model=self._backend.model,
                instructions=prompt.instructions,
                input=prompt.text,
                text={"format": {"type": "json_schema", "name": "analysis", "schema": SCHEMA, "strict": True}},
                max_output_tokens=MOST_TOKENS,
                background=True,
                store=True,
                extra_body={"request_id": name} if self._backend.own_ids else None,
                timeout=timeout,
            )
        except openai.APIConnectionError as error:
            cause = type(error.__cause__).__name__
            # A host that takes no connection is away, like one that refuses it: the client calls both a timeout.
            is_refused = cause in ("ConnectError", "UnsupportedProtocol", "ConnectTimeout", "PoolTimeout")
            if isinstance(error, openai.APITimeoutError) and not is_refused:
                raise TooSlow(f"the model's server did not answer within {timeout:.0f} s") from None
            raise Away(f"the model's server cannot be reached ({cause})", was_sent=not is_refused) from None
        except openai.APIStatusError as error:
            why = f"the model's server says HTTP {error.status_code}: {_words(error)}"
            if _is_away(error.status_code, _AWAY_AT_SUBMIT):
                raise Away(why, was_sent=error.status_code in _MAY_HAVE_IT) from None
            raise Rejected(why) from None
        except (openai.OpenAIError, ValueError) as error:
            raise Away(f"the model's server cannot be understood ({type(error).__name__})", was_sent=True) from None
        state, made = getattr(response, "status", None), getattr(response, "id", None)
        if not state or not made:
            # A page of a gateway, with HTTP 200: the client gives it as it is.
            raise Away("the model's server answers in other words than the API's", was_sent=True)
        if state in ("failed", "cancelled"):
            raise Rejected(f"the model's server took the job and says {state}")
        return str(made)

    def cancel(self, name: str) -> None:
        """Ask for a job to be ended; that it has ended, or is not known, is as good."""
        import contextlib

        import openai

        with contextlib.suppress(openai.OpenAIError):
            self._client.responses.cancel(name, timeout=5.0)


class Looker:
    """Looks at jobs, many at once; for one loop."""

    def __init__(self, backend: Backend) -> None:
        import openai

        self._client = openai.AsyncOpenAI(
            **_arguments(backend), http_client=openai.DefaultAsyncHttpxClient(trust_env=False, follow_redirects=False)
        )

    async def close(self) -> None:
        """Close its connections."""
        await self._client.close()

    async def look(self, name: str) -> Said:
        """Say what became of a job."""
        import openai

        try:
            response = await self._client.responses.retrieve(name)
        except openai.NotFoundError as error:
            # A proxy in front of a server that is away says 404 too, but not in the words of the API.
            return Said("lost") if _is_of_the_api(error) else Said("away", why="HTTP 404 without the API's words")
        except openai.APIStatusError as error:
            # What is neither is a trouble of this one job: it is looked at again until its time is over.
            state: Literal["away", "waiting"] = "away" if _is_away(error.status_code, _AWAY) else "waiting"
            return Said(state, why=f"HTTP {error.status_code}: {_words(error)}")
        except openai.OpenAIError as error:
            return Said("away", why=f"{type(error).__name__} ({type(error.__cause__).__name__})")
        except ValueError as error:
            return Said("away", why=f"an answer that cannot be read ({type(error).__name__})")
        return _said(response)

    async def cancel(self, name: str) -> bool:
        """Ask for a job to be ended; False where the server cannot be asked. Whether it has ended says a look."""
        import openai

        try:
            await self._client.responses.cancel(name)
        except openai.APIStatusError as error:
            return not _is_away(error.status_code, _AWAY)
        except openai.OpenAIError:
            return False
        return True


def _arguments(backend: Backend) -> dict[str, Any]:
    return {
        "base_url": backend.url,
        # The client insists on one, and a server of one's own may want none.
        "api_key": backend.key or "none",
        "default_headers": dict(backend.headers),
        "max_retries": 0,
        "timeout": backend.timeout.total_seconds(),
    }


def _said(response: Any) -> Said:
    state = getattr(response, "status", None)
    if state in ("queued", "in_progress"):
        return Said("waiting")
    if state == "completed":
        try:
            return Said("completed", response.output_text or "", str(response.model))
        except (AttributeError, TypeError):
            return Said("failed", why="the answer has no text")
    if state == "incomplete":
        details = getattr(response, "incomplete_details", None)
        return Said("incomplete", why=f"cut: {getattr(details, 'reason', None) or 'no reason given'}")
    if state in ("failed", "cancelled"):
        error = getattr(response, "error", None)
        return Said("failed", why=f"{state}: {str(getattr(error, 'message', '') or '')[:300]}")
    return Said("away", why=f"an answer with the state {str(state)[:50]!r}")


def _is_away(status: int, said: Collection[int]) -> bool:
    return status in said or status >= _FIRST_OF_GATEWAYS or status < _FIRST_OF_ERRORS


def _is_of_the_api(error: Any) -> bool:
    return isinstance(error.body, dict)


def _words(error: Any) -> str:
    body = error.body
    message = body.get("message") if isinstance(body, dict) else None
    return " ".join(str(message or "no reason given").split())[:300]
