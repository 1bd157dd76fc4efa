"""The worked notebook runs top to bottom in a real kernel, and shows what it promises."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

EXAMPLES = Path(__file__).parents[2] / "examples"
NAME = "search.ipynb"


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The code cells of the executed notebook."""
    folder = tmp_path_factory.mktemp("examples")
    shutil.copytree(EXAMPLES / "sessions", folder / "sessions")
    notebook = nbformat.read(EXAMPLES / NAME, as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def html(cells: list[Any], source: str) -> list[str]:
    """What the cells that hold a piece of source show as HTML."""
    shown = [output for cell in cells if source in cell.source for output in cell.outputs]
    return [output.data["text/html"] for output in shown if "text/html" in output.get("data", {})]


def test_it_runs_top_to_bottom_without_a_warning(cells: list[Any]) -> None:
    assert all(output.output_type == "execute_result" for cell in cells for output in cell.outputs)
    assert sum(1 for cell in cells if cell.outputs) >= 8


def test_it_lists_searches_opens_and_hints_as_cards(cells: list[Any]) -> None:
    assert "<svg" in html(cells, 'operation="list"')[0]
    assert "<mark>" in html(cells, 'query="redis carts"')[0]
    assert "hsh-target" in html(cells, 'operation="open"')[0]
    assert "hsh-hints" in html(cells, "karts")[0]


def test_it_shows_text_beside_html_for_views_without_html(cells: list[Any]) -> None:
    for cell in cells:
        for output in cell.outputs:
            assert output.data["text/plain"]


def test_it_shows_an_incomplete_answer_and_then_a_complete_one(cells: list[Any]) -> None:
    before, after = html(cells, 'query="addendum')
    assert "Incomplete" in before and "0addendu" not in before
    assert "Complete" in after and "0addendu" in after


def test_it_is_kept_without_outputs() -> None:
    kept = json.loads((EXAMPLES / NAME).read_text(encoding="utf-8"))
    assert all(
        not cell["outputs"] and cell["execution_count"] is None for cell in kept["cells"] if cell["cell_type"] == "code"
    )
