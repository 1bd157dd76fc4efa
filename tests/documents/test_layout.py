"""The walls of the package: who may import whom, and what is loaded only when it is needed. Read from the sources."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "harness_session_history"
NAME = PACKAGE.name
MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}

#: The rooms: packages and the modules at the top. Each may import only the rooms that stand here beside it.
GROUND = {"errors", "pacing"}
PLAIN = GROUND | {"model", "text"}
PUBLIC = {"arguments", "errors", "request", "response", "result", "settings", "options", "model"}
WALLS: dict[str, set[str]] = {
    "errors": set(),
    "pacing": set(),
    "model": set(),
    "text": {"model"},
    "archive": PLAIN,
    "index": PLAIN,
    "search": PLAIN | {"index"},
    "refresh": PLAIN | {"archive", "index", "settings"},
    "answer": PLAIN | {"archive", "index", "search", "request", "response", "result"},
    "engine": PLAIN | {"archive", "index", "search", "refresh", "answer", "request", "response", "result", "settings"},
    "arguments": {"errors", "model"},
    "settings": {"archive", "errors", "model"},
    "request": {"arguments", "errors", "model", "response"},
    "response": set(),
    "result": {"display", "response"},
    "options": {"arguments", "errors", "request"},
    "history": PUBLIC | {"answer", "engine", "refresh"},
    "recall": PUBLIC,
    "display": {"model", "response"},
    "doctor": PUBLIC | PLAIN | {"archive", "index", "search", "answer"},
    "streams": {"display", "errors"},
    "cli": PUBLIC | {"streams", "display", "doctor", "history", "recall"},
    "__init__": PUBLIC | {"history", "recall"},
    "__main__": {"cli"},
}
#: Loaded where it is used and nowhere else, with the modules whose purpose it is.
LAZY = {
    "IPython": set[str](),
    "argparse": {"cli", "options"},
    "asyncio": {"recall.mcp_server"},
    "concurrent": set[str](),
    "kingfisher_sdk": set(),
    "html": {"display.notebook", "display.timeline"},
    "logging": set[str](),
    "mcp": {"recall.mcp_server"},
    "mcp_types": {"recall.mcp_server"},
    "msvcrt": {"index.lock"},
    "fcntl": {"index.lock"},
    "platformdirs": set[str](),
    "rich": set[str](),
    "subprocess": {"refresh.processes"},
    "watchfiles": set[str](),
}


def for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def statements(node: ast.AST, *, top_only: bool, types: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """The import statements below a node: all, or those that run when the module is loaded."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif for_types(child) and not types:
            continue
        elif not (top_only and isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)):
            yield from statements(child, top_only=top_only, types=types)


def imported(module: str, *, top_only: bool = False, types: bool = False) -> set[str]:
    """What a module imports: names within the package relative to it (\"\" is the package), others as they are."""
    found = set()
    package = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
    for node in statements(ast.parse(MODULES[module].read_bytes()), top_only=top_only, types=types):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif node.level == 0:
            found.add(node.module or "")
        else:
            parts = package.split(".") if package else []
            base = ".".join([*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])])
            for alias in node.names:
                below = f"{base}.{alias.name}".lstrip(".")
                found.add(below if below in MODULES else base)
    assert not [name for name in found if name.split(".")[0] == NAME], "imports within the package are relative"
    return found


def within(module: str, *packages: str) -> bool:
    return any(module == package or module.startswith(package + ".") for package in packages)


def own(module: str, *, types: bool = False) -> set[str]:
    return {name for name in imported(module, types=types) if name in MODULES}


def belonging_to(*packages: str) -> list[str]:
    return [module for module in MODULES if within(module, *packages)]


def room(module: str) -> str:
    return module.split(".")[0]


@pytest.mark.parametrize("module", MODULES)
def test_a_room_imports_only_the_rooms_that_it_may(module: str) -> None:
    beside = {room(name) for name in own(module, types=True)} - {room(module)}
    assert beside <= WALLS[room(module)]


def test_every_room_has_its_walls() -> None:
    assert {room(module) for module in MODULES} == WALLS.keys()


@pytest.mark.parametrize("module", MODULES)
def test_what_is_heavy_is_imported_where_it_is_used(module: str) -> None:
    tops = {name.split(".")[0] for name in imported(module, top_only=True)}
    assert {name for name in tops & LAZY.keys() if module not in LAZY[name]} == set()


def test_modules_import_each_other_in_no_circle() -> None:
    graph = {module: own(module, types=True) - {module} for module in MODULES}
    while free := [module for module, beside in graph.items() if not beside & graph.keys()]:
        for module in free:
            del graph[module]
    assert not graph


def test_the_rooms_stand_on_eight_floors_at_most() -> None:
    beside = {
        name: {room(other) for module in belonging_to(name) for other in own(module, types=True)} for name in WALLS
    }
    floors: dict[str, int] = {}
    while len(floors) < len(WALLS):
        free = {name for name in WALLS.keys() - floors.keys() if beside[name] - {name} <= floors.keys()}
        assert free, "a circle of rooms"
        floors |= dict.fromkeys(free, max(floors.values(), default=0) + 1)
    assert max(floors.values()) <= 8


def test_few_modules_stand_at_the_top() -> None:
    assert len([module for module in MODULES if "." not in module and MODULES[module].name != "__init__.py"]) <= 12


def loaded_by(module: str) -> set[str]:
    """What is loaded when a module of the package is."""
    code = f"import sys, {NAME}.{module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_package_alone_is_loaded_without_anything_else() -> None:
    code = f"import sys; before = set(sys.modules); import {NAME}; print(*sys.modules.keys() - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [NAME]


def test_a_history_is_loaded_without_what_only_some_calls_need() -> None:
    some = {
        f"{NAME}.{module}" for module in ("refresh.run", "refresh.updater", "search.query", "search.rank", "display")
    }
    assert not (some | LAZY.keys() - {"fcntl"}) & loaded_by("engine.calls")


def test_the_class_is_loaded_without_what_only_a_history_needs() -> None:
    parts = {f"{NAME}.{module}" for module in ("engine.calls", "archive", "index")}
    assert not (parts | LAZY.keys() | {"apsw", "hashlib"}) & loaded_by("history")


def test_whether_there_is_anything_to_read_is_known_without_what_reads() -> None:
    assert not {f"{NAME}.{module}" for module in ("refresh.extract", "refresh.readers", "refresh.indexer")} & loaded_by(
        "refresh.updater"
    )


def test_a_reading_process_loads_only_what_reads() -> None:
    own = {name.removeprefix(NAME).lstrip(".") for name in loaded_by("refresh.readers") if within(name, NAME)}
    others = {name for name in own if name and not within(name, "archive", "index", *PLAIN)}
    assert others == {"refresh", "refresh.extract", "refresh.readers"}
    assert not {"apsw", "asyncio", "logging", "subprocess"} & loaded_by("refresh.readers")
