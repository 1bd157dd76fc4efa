"""Why there is nothing to answer from: said where no root holds a session. It knows the files and the snapshot only."""

from __future__ import annotations

from ..index.catalog import Catalog
from ..index.freshness import Difference
from ..index.schema import FOREIGN
from ..model.sources import Walk


def without_sessions(seen: Walk, difference: Difference, catalog: Catalog) -> str | None:
    """One sentence on the roots if these hold no Pi session at all, and none that is out of reach is known; else None."""
    known = (difference.indexed, difference.duplicate, difference.pending, difference.unreadable, difference.lost)
    if any(known) or difference.away or any(seen.unavailable):
        return None
    places = [f"{root.path}{'' if root.reachable else f' ({root.reason})'}" for root in seen.roots]
    rows = (catalog.sources.get(path) for path in seen.files)
    other = sum(row is not None and row.state == FOREIGN for row in rows)
    said = f"no Pi session under {', '.join(places)}" if places else "no folder of sessions is named"
    said = said.encode("utf-8", "replace").decode()  # a path may hold bytes that are no text
    return said + (f"; {other:,} {'file' if other == 1 else 'files'} of another format" if other else "")
