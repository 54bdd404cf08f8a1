"""What reading XBRL costs is printed; that every reader gives the same facts is asserted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks import xbrl

pytestmark = pytest.mark.benchmark


def test_every_reader_gives_the_same_facts_and_what_they_cost_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "EDGAR_LOCAL_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    for name, facts, words in xbrl.SIZES:
        print("\n" + "\n".join(xbrl.measure(name, xbrl.generated(facts, words), 5)), flush=True)
    print("\n" + "\n".join(xbrl.measure_peak()), flush=True)
