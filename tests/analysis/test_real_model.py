"""The same promises against a real server of the Responses API, as vLLM is, where LLM_BASE_URL and LLM_MODEL name one.

    LLM_BASE_URL=http://127.0.0.1:8000/v1 LLM_MODEL=name ./run test -k real_model

Only the client and the verdicts are tried here: what the server says, not whether the model reads well. A model of
noise does, as long as it keeps to the schema. VLLM_ENABLE_RESPONSES_API_STORE=1 has to be set there.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from include.analysis import prompts, verdicts
from include.analysis.model import Backend, Looker, Said, Submitter

pytestmark = pytest.mark.skipif(
    not (os.environ.get("LLM_BASE_URL") and os.environ.get("LLM_MODEL")),
    reason="no real model is named: set LLM_BASE_URL and LLM_MODEL",
)
# A model on a processor takes its time over two thousand tokens.
PATIENCE = 600.0


@pytest.fixture
def backend() -> Backend:
    return Backend(
        os.environ["LLM_BASE_URL"],
        os.environ["LLM_MODEL"],
        os.environ.get("LLM_API_KEY", ""),
        {},
        timedelta(seconds=60),
    )


@pytest.fixture
def submitter(backend: Backend) -> Iterator[Submitter]:
    made = Submitter(backend)
    yield made
    made.close()


def with_looker(backend: Backend, work: Callable[[Looker], Any]) -> Any:
    async def once() -> Any:
        looker = Looker(backend)
        try:
            return await work(looker)
        finally:
            await looker.close()

    return asyncio.run(once())


def ended(backend: Backend, name: str) -> Said:
    """What a job comes to."""

    async def until_over(looker: Looker) -> Said:
        until = time.monotonic() + PATIENCE
        while (said := await looker.look(name)).state == "waiting":
            assert time.monotonic() < until, f"{name} is waiting after {PATIENCE:.0f} s"
            await asyncio.sleep(1)
        return said

    return with_looker(backend, until_over)  # type: ignore[no-any-return]


def test_a_job_has_our_name_and_ends_in_the_form_that_was_asked_for(backend: Backend, submitter: Submitter) -> None:
    name = f"resp_{uuid4().hex}"
    prompt = prompts.build("단일판매ㆍ공급계약체결", "가온전자", "계약금액 1,234억원")
    assert submitter.submit(name, prompt, 60) == name
    said = ended(backend, name)
    assert said.state in ("completed", "incomplete")
    if said.state == "completed":
        # Noise is of the form, and neither in Korean nor short.
        assert msgspec.json.decode(said.text, type=verdicts.Analysis).sentiment in ("positive", "negative", "neutral")


def test_a_name_that_nobody_gave_is_lost_and_not_away(backend: Backend) -> None:
    assert with_looker(backend, lambda looker: looker.look(f"resp_{uuid4().hex}")) == Said("lost")


def test_a_job_that_is_ended_is_over_and_ending_it_again_is_no_error(backend: Backend, submitter: Submitter) -> None:
    name = f"resp_{uuid4().hex}"
    submitter.submit(name, prompts.build("주주총회소집결의", "가온전자", "본문 " * 2_000), 60)
    assert with_looker(backend, lambda looker: looker.cancel(name)) is True
    assert with_looker(backend, lambda looker: looker.cancel(name)) is True
    assert ended(backend, name).state in ("failed", "completed", "incomplete")
