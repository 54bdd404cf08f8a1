"""Imported by every Airflow process when it starts: makes `include` importable.

Promises: the repository's root is on the import path in the scheduler, the workers, the triggerer, the DAG
processor, the api-server and the command line alike. Never: anything else happens here.
"""

from __future__ import annotations

import sys
from pathlib import Path

_ROOT = str(Path(__file__).resolve().parent.parent)
if _ROOT not in sys.path:
    sys.path.insert(0, _ROOT)
