"""The scans of DART: what changed between reports, statements, and a file for each type of report items.

Promises: types and their fields are those of the rows in the snapshot. Never: nothing is known but the views.
"""

from __future__ import annotations

from include.engine.db import Connection, query
from include.outputs import shapes_dart
from include.outputs.scans import Scan


def scans(snapshot: Connection) -> list[Scan]:
    """Return the parts of dart/scan as of a snapshot."""
    found = [Scan("changes", shapes_dart.SCAN_CHANGES), Scan("finance", shapes_dart.SCAN_FINANCE)]
    for row in snapshot.execute(query("prebuild.kinds")).fetchall():
        fields = tuple(name for name in row["fields"] if name not in shapes_dart.ITEM_COLUMNS)
        shape = shapes_dart.scan_report(fields)
        found.append(Scan(f"report/{row['endpoint']}", shape, ("endpoint", row["endpoint"]), "item_values", fields))
    return found
