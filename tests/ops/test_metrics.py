"""What Prometheus is given, and the dashboard that is drawn of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from include.ops.api import metrics
from tests.engine.seoul import Seoul
from tests.ops.conftest import Api

ROOT = Path(__file__).resolve().parents[2]
_LABELS = r'[a-z_]+="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"([a-z_]+)\{{({_LABELS}(?:,{_LABELS})*)\}} (-?[0-9]+(?:\.[0-9]+)?)")


def parse(text: str) -> dict[str, dict[str, float]]:
    """Metric → labels → value, as strictly as the format is described."""
    found: dict[str, dict[str, float]] = {}
    assert text.endswith("\n")
    current = ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            current = line.split(" ", 3)[2]
            assert current not in found, "a metric stands in one piece"
            found[current] = {}
        elif line.startswith("# TYPE "):
            assert line == f"# TYPE {current} gauge"
        else:
            sample = SAMPLE.fullmatch(line)
            assert sample is not None, line
            assert sample[1] == current
            assert sample[2] not in found[current], "a series is given once"
            found[current][sample[2]] = float(sample[3])
    return found


def test_every_number_is_read_from_rows_and_parses(api: Api, seoul: Seoul) -> None:
    seoul.sql(
        "insert into collect.lease_events (at, kind, cycle_id, stream, attempt, words) "
        "values (collect.clock(), 'expired', 1, 'a', 1, 'gone')"
    )
    seoul.sql(
        "insert into collect.host_groups (host_group, interval, next_allowed_at, blocked_until, penalty, quota, "
        "quota_zone, updated_at) "
        "values (%s, '1 second', collect.clock(), collect.clock() + interval '90 seconds', '1 minute', 100, "
        "'Asia/Seoul', collect.clock())",
        'a"b\\c',
    )
    seoul.sql(
        "insert into collect.key_usage (host_group, key_fingerprint, usage_date, used, updated_at) "
        "values (%s, 'abcdef012345', (collect.clock() at time zone 'Asia/Seoul')::date, 40, collect.clock())",
        'a"b\\c',
    )
    answer = api.get("/metrics")
    assert (answer.status_code, answer.headers["content-type"]) == (200, metrics.MEDIA_TYPE)
    found = parse(answer.text)
    assert set(found) == set(metrics.METRICS)
    assert found["daybook_lease_losses"] == {'kind="expired"': 1, 'kind="refused"': 0}
    assert found["daybook_quota_left"] == {r'host_group="a\"b\\c",key="abcdef012345"': 60}
    assert 80 < found["daybook_host_wait_seconds"][r'host_group="a\"b\\c"'] <= 90
    assert found["daybook_outbox_age_seconds"]['outbox="files"'] == 0
    assert api.get("/metrics", None).status_code == 401


def test_what_the_dashboard_draws_is_given() -> None:
    dashboard = json.loads((ROOT / "docs" / "dashboards" / "daybook.json").read_text())
    drawn = {
        name for panel in dashboard["panels"] for name in re.findall(r"daybook_[a-z_]+", json.dumps(panel["targets"]))
    }
    assert drawn == set(metrics.METRICS)
