"""The client without Xet: it decides that when it is imported, so it runs in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.fixtures_sandbox import Start

PROGRAM = """
import sys
from pathlib import Path
from huggingface_hub import CommitOperationAdd, HfApi, hf_hub_download
endpoint, cache = sys.argv[1:]
api = HfApi(endpoint=endpoint, token="hf_any")
api.create_repo("me/lfs", repo_type="dataset")
files = {f"d/{n}.parquet": bytes([n]) * (1000 + n) for n in range(6)} | {"a.json": b"{}"}
def commit():
    operations = [CommitOperationAdd(path, body) for path, body in files.items()]
    return api.create_commit("me/lfs", operations, commit_message="x", repo_type="dataset").oid
oid = commit()
assert commit() == oid
for path, body in files.items():
    local = hf_hub_download("me/lfs", path, repo_type="dataset", endpoint=endpoint, token="hf_any", cache_dir=cache)
    assert Path(local).read_bytes() == body, path
print(oid)
"""


def test_lfs_takes_a_batch_an_upload_and_a_check_for_each_file(sandbox: Start, tmp_path: Path) -> None:
    running = sandbox()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, running.hub_url, str(tmp_path / "cache")],
        env={**os.environ, "HF_HUB_DISABLE_XET": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    kinds = Counter(one["kind"] for one in running.requests())
    assert kinds["lfs_batch"] == 2
    assert kinds["lfs_put"] == kinds["lfs_verify"] == kinds["cdn"] == 6
    assert kinds["commit"] == 1
    assert not [kind for kind in kinds if kind.startswith(("cas", "xet"))]
    (repo,) = running.control("GET", "hub")["repositories"]
    assert repo["head"] == done.stdout.strip()
