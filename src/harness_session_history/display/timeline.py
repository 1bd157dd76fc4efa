"""A small timeline of sessions by day, as inline SVG that needs neither script nor style sheet to be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

from . import words

_WIDTH, _HEIGHT, _BASE, _TOP = 640, 84, 62, 16
_SLOTS = 60


def timeline(sessions: Sequence[words.Answer]) -> str:
    """Bars of how many of ``sessions`` were last active on each day; empty without any time.

    Where the days do not fit side by side, each bar stands for several days and says so.
    """
    days = [found for view in sessions if (found := words.day(view.get("updatedAt") or view.get("createdAt")))]
    if not days:
        return ""
    first, last = min(days), max(days)
    span = (last - first).days + 1
    step = -(-span // _SLOTS)
    slots = -(-span // step)
    counts = Counter((found - first).days // step for found in days)
    slot = min(40.0, _WIDTH / slots)
    left = max(0.0, min(40.0 - slot / 2, (_WIDTH - slot * slots) / 2))
    tallest = max(counts.values())
    bars = []
    for index, n in sorted(counts.items()):
        start = first.toordinal() + index * step
        stop = min(start + step - 1, last.toordinal())
        label = type(first).fromordinal(start).isoformat()
        if stop > start:
            label += f" to {type(first).fromordinal(stop).isoformat()}"
        height = max(3.0, (_BASE - _TOP) * n / tallest)
        x, width = left + index * slot, max(2.0, slot * 0.72)
        bars.append(
            f"<g><title>{escape(label)}: {words.count(n, 'session')}</title>"
            f'<rect class="hsh-bar" fill="currentColor" x="{x + (slot - width) / 2:.1f}" y="{_BASE - height:.1f}" '
            f'width="{width:.1f}" height="{height:.1f}" rx="1.5"></rect>'
            f'<text class="hsh-tick" fill="currentColor" x="{x + slot / 2:.1f}" y="{_BASE - height - 4:.1f}" '
            f'font-size="10" text-anchor="middle">{n}</text></g>'
        )
    return _frame("".join(bars), first.isoformat(), last.isoformat(), step, len(days), left, slot * slots)


def _frame(bars: str, first: str, last: str, step: int, total: int, left: float, width: float) -> str:
    unit = "one day" if step == 1 else f"{step:,} days"
    title = f"{words.count(total, 'session')} by day of last activity"
    reach = f"on {first}" if first == last else f"from {first} to {last}"
    right = max(left + width, 150.0)
    ends = f'<text class="hsh-tick" fill="currentColor" x="{left:.1f}" y="78" font-size="11">{first}</text>'
    if first != last:
        ends += (
            f'<text class="hsh-tick" fill="currentColor" x="{right:.1f}" y="78" font-size="11" '
            f'text-anchor="end">{last}</text>'
        )
    return (
        f'<svg class="hsh-time" role="img" aria-label="{escape(title)}" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}"><title>{escape(title)}</title>'
        f"<desc>{escape(title)} {reach}; each bar is {unit}.</desc>"
        f'<rect class="hsh-axis" fill="currentColor" x="{left:.1f}" y="{_BASE}" width="{right - left:.1f}" height="1"></rect>'
        f"{bars}{ends}</svg>"
    )
