"""What every test of the history stands on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from world import World, without_environment


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """An empty archive, and an environment that names no other."""
    for name in os.environ.keys() - without_environment(dict(os.environ)).keys():
        monkeypatch.delenv(name)
    made = World(tmp_path)
    yield made
    made.close()
