"""Which model computes on which cores."""

from __future__ import annotations

from typing import Iterable, Mapping


def budget(available: Iterable[int], wanted: Mapping[str, int | None]) -> dict[str, tuple[int, ...]]:
    """Model -> its cores, out of those that the process may use.

    ``wanted`` is a number of cores per model, None for a fair share of what the others leave. As long as there are
    enough, no two models have a core in common; then they are dealt round, so that each core has as few models as
    possible. Every model has at least one, and none more than there are.

    >>> budget([0, 1, 2, 3], {"detect": 3, "classify": None})
    {'classify': (3,), 'detect': (0, 1, 2)}
    """
    cores = sorted(set(available))
    if not cores:
        raise ValueError("there is no core to compute on")
    counts = _counts(len(cores), wanted)
    dealt: dict[str, tuple[int, ...]] = {}
    position = 0
    # Who asked for a number goes first and gets neighbours, which on most SoCs share a cache.
    for model in sorted(counts, key=lambda name: (wanted[name] is None, name)):
        taken = [cores[(position + index) % len(cores)] for index in range(counts[model])]
        position += counts[model]
        dealt[model] = tuple(sorted(taken))
    return dict(sorted(dealt.items()))


def _counts(total: int, wanted: Mapping[str, int | None]) -> dict[str, int]:
    counts = {model: max(1, min(total, number)) for model, number in wanted.items() if number is not None}
    sharing = sorted(model for model, number in wanted.items() if number is None)
    left = max(0, total - sum(counts.values()))
    for index, model in enumerate(sharing):
        share = left // len(sharing) + (index < left % len(sharing))
        counts[model] = max(1, share)
    return counts
