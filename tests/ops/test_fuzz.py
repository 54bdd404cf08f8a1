"""The API against its own description: whatever is sent, fitting or not, the answer is one that is described.

What must be refused is tried by name (test_access, test_reads, test_changes): any text is a valid query parameter, so
a generator cannot tell a wrong one from a right one that finds nothing.
"""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, assume, given, settings
from schemathesis import GenerationMode
from schemathesis.openapi import from_dict

from tests.engine.seoul import Seoul
from tests.ops.conftest import HOST, Api
from tests.ops.test_changes import entry
from tests.ops.test_reads import filled

# How many requests every operation gets: with these the whole takes well under a minute on an idle machine.
EXAMPLES = {GenerationMode.POSITIVE: 12, GenerationMode.NEGATIVE: 6}

CHECKS = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance")


@pytest.mark.slow
@pytest.mark.parametrize("mode", EXAMPLES, ids=str)
def test_every_operation_answers_as_it_is_described(api: Api, seoul: Seoul, mode: GenerationMode) -> None:
    filled(seoul)
    for rule in ("parse", "a-rule"):
        entry(seoul, rule)
    described = from_dict(api.app.openapi())
    checks: list[Any] = [schemathesis.checks.CHECKS.get_one(name) for name in CHECKS]
    operations = [result.ok() for result in described.get_all_operations()]
    assert len(operations) > 20
    for operation in operations:
        assert _try(api, operation, mode, checks), operation.label


def _try(api: Api, operation: Any, mode: GenerationMode, checks: list[Any]) -> int:
    """Ask one operation; how often it was asked."""
    tried = 0

    @settings(
        max_examples=EXAMPLES[mode],
        deadline=None,
        database=None,
        derandomize=True,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def attempt(case: Any) -> None:
        nonlocal tried
        tried += 1
        sent = case.as_transport_kwargs(base_url=f"{HOST}/daybook", headers=api.headers("admin"))
        # An address with a line break in it is nobody's: it does not come as far as the API.
        assume("%0A" not in sent["url"])
        kept = {name: sent[name] for name in ("method", "url", "params", "json", "headers") if name in sent}
        case.validate_response(api.client.request(**kept, content=sent.get("data")), checks=checks)

    attempt()
    return tried
