"""The measurements and the example archive must not rot: made-up archives are well formed, and the benchmark still runs.

Nothing here asserts a time.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.generate import Made, generate
from benchmarks.quality.archive import ROUTINE, build
from benchmarks.quality.evaluate import HALVES, draw, place, read_questions


def contents(root: Path) -> dict[str, str]:
    """Path below the root to a digest of the file."""
    files = (f for f in sorted(root.rglob("*.jsonl")) if f.is_file())
    return {f.relative_to(root).as_posix(): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


def entries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Made]:
    root = tmp_path_factory.mktemp("generated") / "sessions"
    return root, generate(root, size=1_500_000, sessions=12, seed=5)


def test_the_generator_writes_the_same_archive_for_the_same_seed(small: tuple[Path, Made], tmp_path: Path) -> None:
    generate(tmp_path / "again", size=1_500_000, sessions=12, seed=5)
    assert contents(tmp_path / "again") == contents(small[0])


def test_every_generated_entry_links_to_an_earlier_one_of_its_file(small: tuple[Path, Made]) -> None:
    for path in small[0].rglob("*.jsonl"):
        head, *rest = entries(path)
        assert head["type"] == "session" and head["id"] == path.stem.partition("_")[2]
        known = {None}
        for entry in rest:
            assert entry["parentId"] in known and entry["id"] not in known
            known.add(entry["id"])


def test_the_generator_reports_what_it_wrote(small: tuple[Path, Made]) -> None:
    root, made = small
    files = [f for f in root.rglob("*.jsonl") if f.is_file()]
    assert (made.sessions, made.bytes) == (len(files), sum(f.stat().st_size for f in files))
    assert 1_500_000 <= made.bytes < 2_500_000
    assert 0 < made.text_bytes < made.bytes * 0.12


def test_most_generated_bytes_are_tool_traffic(small: tuple[Path, Made]) -> None:
    tools = total = 0
    for path in small[0].rglob("*.jsonl"):
        for line in path.read_bytes().split(b"\n"):
            total += len(line)
            tools += len(line) if b'"toolResult"' in line or b'"toolCall"' in line else 0
    assert tools / total > 0.8


@pytest.mark.parametrize("shape", ["one-large", "images", "many"])
def test_each_shape_can_be_generated(shape: str, tmp_path: Path) -> None:
    made = generate(tmp_path / "sessions", shape=shape, size=400_000, sessions=25)
    assert made.sessions == (25 if shape == "many" else 1)


@pytest.mark.parametrize("name", ROUTINE)
def test_every_question_has_its_answer_in_its_archive(name: str, tmp_path: Path) -> None:
    archive = build(tmp_path / "sessions", name, share=0)
    wanted = [label for q in read_questions() if q.archive == name for label in q.want]
    assert wanted and [label for label in wanted if label not in archive.keys] == []


def test_an_evaluation_archive_is_the_same_for_the_same_seed_and_so_is_what_is_drawn_from_it(tmp_path: Path) -> None:
    one, two, other = (build(tmp_path / str(n), "research", seed) for n, seed in enumerate((1, 1, 2)))
    assert contents(one.root) == contents(two.root) != contents(other.root)
    assert draw({"research": one}, 20, 1) == draw({"research": two}, 20, 1) != draw({"research": one}, 20, 2)


def test_both_halves_of_the_questions_hold_every_kind_and_no_question_is_in_both() -> None:
    questions = read_questions()
    assert len({(q.archive, q.query) for q in questions}) == len(questions) >= 300
    kinds = [{q.kind for q in questions if q.half == half} for half in HALVES]
    assert kinds[0] == kinds[1]


def test_both_halves_of_the_questions_are_about_different_conversations() -> None:
    told = [
        {(q.archive, w.partition("/")[0]) for q in read_questions() if q.half == half for w in q.want}
        for half in HALVES
    ]
    assert told[0] & told[1] == set()


def test_what_the_caller_sees_are_the_results_and_the_nearest_entries_up_to_five() -> None:
    def cited(*entries: str) -> list[dict[str, Any]]:
        return [{"citation": {"sessionId": "s", "entryId": entry}} for entry in entries]

    hints = {"nearest": cited("d", "e", "f"), "sessions": [{"sessionId": "t"}]}
    answer = {"results": cited("a", "b", "c"), "hints": hints}
    assert [place(answer, {("s", entry)}) for entry in "abcdef"] == [1, 2, 3, 4, 5, None]
    assert [place(answer, {(session, "")}) for session in "stu"] == [1, 1, None]
    assert place({"results": cited("a")}, {("s", "b")}) is None


def test_the_examples_are_what_their_script_writes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(ROOT / "examples" / "make_sessions.py"), str(tmp_path / "made")], check=True)
    assert contents(tmp_path / "made") == contents(ROOT / "examples" / "sessions")


@pytest.mark.slow_smoke
def test_the_benchmark_runs_in_its_smoke_form(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.run", "--scale", "smoke", "--json", "--cache", str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    rows = json.loads(run.stdout)["rows"]
    assert {"open", "import", "search, rare word", "nothing changed, 40 files"} <= {row["what"] for row in rows}


@pytest.mark.slow_smoke
def test_the_search_evaluation_runs_in_its_smoke_form(tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir()
    archive = build(tmp_path / "sessions", "research", share=0)
    own = {
        "half": "tuning",
        "kind": "own",
        "archive": "mine",
        "query": "Krippendorff",
        "want": ["/".join(archive.keys["interview-codes/cause"])],
    }
    extra = tmp_path / "extra.json"
    extra.write_text(json.dumps({"archives": {"mine": str(archive.root)}, "questions": [own]}), encoding="utf-8")
    command = [sys.executable, "-m", "benchmarks.quality", "--smoke", "--json", "--extra", str(extra)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    figures = json.loads(run.stdout)["figures"]
    assert list(figures) == ["tuning", "held-out", "drawn", "extra, tuning"]
    assert figures["tuning"]["all"]["questions"] + figures["held-out"]["all"]["questions"] >= 40
    assert figures["extra, tuning"]["own"]["recall@5"] == 1
