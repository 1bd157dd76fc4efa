"""Long loops make room for other threads, and give what they would give without."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_session_history import pacing


@given(st.lists(st.integers()), st.integers(1, 5))
def test_the_values_are_the_same_in_order(values: list[int], many: int) -> None:
    assert list(pacing.paced(iter(values), many)) == values


@pytest.mark.parametrize(("count", "times"), [(0, 0), (2, 0), (3, 1), (7, 2)])
def test_others_have_their_turn_after_so_many_values(count: int, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[None] = []
    monkeypatch.setattr(pacing, "let_others_run", lambda: taken.append(None))
    list(pacing.paced(range(count), 3))
    assert len(taken) == times


def test_others_have_their_turn_after_so_much_time(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[None] = []
    clock = iter([0.0, 0.001, 0.003, 0.003, 0.004])
    monkeypatch.setattr(pacing, "let_others_run", lambda: taken.append(None))
    monkeypatch.setattr(pacing.time, "monotonic", lambda: next(clock))
    step = pacing.Pacer()
    step()
    assert not taken
    step()
    step()
    assert len(taken) == 1
