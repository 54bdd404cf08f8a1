"""The pools of an installation: those of config/pools.json, sized by its settings.

    python -m include.local.pools THERE.json WANTED.json     for the compose stack, which imports what this writes

Promises: `./run up` and the compose stack give the same pools; a pool that an operator resized stays so, but for
`llm`, which follows AI_CONCURRENCY. Never: a pool is taken away.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from include import settings
from include.local import environment

FILE = settings.ROOT / "config" / "pools.json"
FOLLOWS = "llm"


def sizes(parallelism: int, ai_concurrency: int, file: Path = FILE) -> dict[str, dict[str, Any]]:
    """The pools of the file, with the two that follow a setting sized by it."""
    pools: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    pools["backfill"]["slots"] = max(1, parallelism // 4)
    pools[FOLLOWS]["slots"] = ai_concurrency
    return pools


def to_write(there: Mapping[str, Mapping[str, Any]], wanted: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The pools that are missing, and the one that follows its setting where it differs."""
    return {
        name: pool
        for name, pool in wanted.items()
        if name not in there or (name == FOLLOWS and there[name]["slots"] != pool["slots"])
    }


def main(there: Path, wanted: Path) -> int:
    """Write what Airflow shall import, given what it exported.

    Raises:
        SettingError: a setting that sizes a pool cannot be used.
    """
    pools = sizes(environment.parallelism(settings.environment()), settings.load().ai_concurrency)
    missing = to_write(json.loads(there.read_text(encoding="utf-8")), pools)
    wanted.write_text(json.dumps(missing), encoding="utf-8")
    print(f"{', '.join(missing) or 'none'} to be made or resized")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
    except settings.SettingError as refused:
        sys.exit(f"REFUSED – {refused}")
