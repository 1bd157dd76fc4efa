"""The law of files that share a session id: whatever they hold in common, every entry of each of them is found once, and opens
on the branch of a file that has it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from world import World

#: One file: how much of the common beginning it has, where its own entries go on (None: where that ends), how many there are,
#: what kind of file it is.
_files = st.lists(
    st.tuples(
        st.integers(0, 4), st.one_of(st.none(), st.integers(0, 3)), st.integers(0, 3), st.sampled_from(["", "deleted", "child", "reset"])
    ),
    min_size=1,
    max_size=4,
)  # fmt: skip


class Written:
    """A file of the session: its visible branch in order, and whether its name says that it was deleted."""

    def __init__(self, world: World, number: int, begun: int, at: int | None, own: int, kind: str) -> None:
        session = world.session("a")
        ids = [session.user(f"common word{n}", key=f"common{n}") for n in range(begun)]
        branch = [f"common word{n}" for n in range(begun)]
        if at is not None and at < begun and own:
            session.last, branch = ids[at], branch[: at + 1]
        for n in range(own):
            session.user(f"own word{number}x{n}", key=f"own{number}x{n}")
        self.branch = [*branch, *(f"own word{number}x{n}" for n in range(own))]
        self.deleted = kind == "deleted"
        folder = "--w-demo--/subagents" if kind == "child" else "--w-demo--"
        mark = f".{kind}.2026-03-02T12-24-51.414Z" if kind in ("deleted", "reset") else ""
        session.save(folder, f"file{number}.jsonl{mark}")


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(_files)
def test_every_entry_of_every_file_is_found_once_and_opens_on_a_branch_that_has_it(said: list[Any]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="shared-"))
    world = World(folder)
    try:
        files = [Written(world, number, *one) for number, one in enumerate(said)]
        world.refresh()
        for deleted in (False, True):
            counting = [file.branch for file in files if deleted or not file.deleted]
            wanted = {text for branch in counting for text in branch}
            hits = world.hits("word*", limit=20, refresh=False, include_deleted=deleted)
            assert sorted(hit["snippet"] for hit in hits) == sorted(wanted)
            for hit in hits:
                assert "alsoIn" not in hit and hit["visible"]
                shown = world.opened(
                    hit["citation"]["sessionId"], hit["citation"]["entryId"], before=1, after=1, refresh=False, include_deleted=deleted
                )  # fmt: skip
                around = [
                    branch[max(0, at - 1) : at + 2]
                    for branch in counting
                    for at, text in enumerate(branch)
                    if text == hit["snippet"]
                ]
                assert shown in around
            listed = world.list(refresh=False, include_deleted=deleted)
            assert len(listed) == bool(counting)
            assert all(view["deleted"] == all(file.deleted for file in files) for view in listed)
    finally:
        world.close()
        shutil.rmtree(folder)
