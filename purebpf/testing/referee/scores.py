"""Score what a profiler said about a program that measured itself.

The rules are for any profiler, and use nothing but its output as folded stacks:

- A stack is *impossible* if the program's own functions in it, from the outermost to the innermost,
  do not begin any path that the program takes, and no frame marks that something is missing there.
- It is *cut* if they do not, and a frame in brackets (`[unknown]`, `[truncated]`) says so.
- The *share error* is half the sum, over the leaves of the program's paths, of the differences
  between the share of samples and the share of CPU time that the program measured. A sample on the
  way to a leaf counts for that leaf, as the program measures whole calls. The samples of all runs
  count together. `chance` is the error that a perfect sampler with as many samples would have on
  average, and the part of the error that 95 of 100 perfect samplers do not have is *beyond chance*.
- *Missed* samples are CPU time times frequency, less the samples, less the ones that the profiler
  says it lost.
- *Unnamed* frames are ones in brackets, or with an address instead of a function.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from purebpf.tuples import NamedTuple

__all__ = ["Observation", "Score", "ShareError", "Truth", "score", "share_error"]

_PERFECT_SAMPLERS = 500
_CHANCE = 0.95

_OWN = re.compile(r"\bref_\w+")
_MARK = re.compile(r"^\[.*\]$")
_ADDRESS = re.compile(r"^\[.*\]$|0x[0-9a-f]+$|^[0-9a-f]{6,}$")


class Truth(NamedTuple):
    """CPU seconds that a program measured itself, by path of its own functions, and in all."""

    paths: Mapping[tuple[str, ...], float]
    cpu_s: float


class Observation(NamedTuple):
    """Output of a profiler about one run of a program.

    Attributes:
        stacks: samples by stack, the outermost frame first.
        lost: samples that the profiler says it lost.
        tool_cpu_s: CPU seconds of the profiler, from its start to its output.
    """

    stacks: Mapping[tuple[str, ...], int]
    lost: int
    tool_cpu_s: float


class Score(NamedTuple):
    """A row of the table; shares are between 0 and 1.

    Attributes:
        samples: that the profiler shows of this program.
        impossible: share of stacks that the program never has.
        cut: share of stacks that lack callers, and say so.
        missed: share of samples that the profiler does not mention.
        unnamed: share of frames.
        leaves: samples by the leaf that they count for.
        shares: of the CPU time, by leaf, as the program measured them.
    """

    samples: int
    impossible: float
    cut: float
    missed: float
    unnamed: float
    leaves: Mapping[str, int]
    shares: Mapping[str, float]


class ShareError(NamedTuple):
    """The errors of the shares of functions, in one run or several.

    Attributes:
        error: half the sum of the differences.
        chance: the same of a perfect sampler, on average.
        beyond: the part of `error` above what 95 of 100 perfect samplers stay below.
    """

    error: float
    chance: float
    beyond: float


def score(truth: Truth, seen: Observation, frequency: int) -> Score:
    """Compare one observation with the truth.

    Args:
        truth: what the program measured.
        seen: what the profiler said.
        frequency: samples a second of CPU time that the profiler was asked for.

    Raises:
        ValueError: the profiler showed nothing, or the program measured nothing.
    """
    samples = sum(seen.stacks.values())
    if not samples or truth.cpu_s <= 0:
        raise ValueError("no samples, or no truth, to compare")
    begins = {path[:length] for path in truth.paths for length in range(1, len(path) + 1)}
    wrong, frames, unnamed = Counter[str](), 0, 0
    inner = Counter[str]()
    for stack, count in seen.stacks.items():
        frames += len(stack) * count
        unnamed += sum(1 for frame in stack if _ADDRESS.search(frame)) * count
        own = own_functions(stack)
        if own:
            inner[_leaf(truth, own)] += count
        if own and own not in begins:
            marked = any(_MARK.match(frame) for frame in stack)
            wrong["cut" if marked else "impossible"] += count
    expected = truth.cpu_s * frequency
    by_leaf = Counter[str]()
    for path, cpu_s in truth.paths.items():
        by_leaf[path[-1]] += cpu_s  # type: ignore[assignment]
    whole = sum(by_leaf.values())
    return Score(
        samples,
        wrong["impossible"] / samples,
        wrong["cut"] / samples,
        max(0.0, 1 - (samples + seen.lost) / expected),
        unnamed / frames if frames else 0.0,
        inner,
        {leaf: cpu_s / whole for leaf, cpu_s in by_leaf.items()},
    )


def own_functions(stack: Sequence[str]) -> tuple[str, ...]:
    """Return the program's own functions in a stack; one frame names one."""
    return tuple(match[0] for frame in stack if (match := _OWN.search(frame)))


def _leaf(truth: Truth, own: tuple[str, ...]) -> str:
    """Return the leaf of all paths that begin so, or the innermost function."""
    leaves = {path[-1] for path in truth.paths if path[: len(own)] == own}
    return leaves.pop() if len(leaves) == 1 else own[-1]


def share_error(scores: Iterable[Score]) -> ShareError:
    """Compare the shares of functions in all runs of one profiler on one program with the truth.

    A run that names no function of the program is wrong in all its samples.
    """
    samples, expected = Counter[str](), Counter[str]()
    for run in scores:
        leaves = run.leaves or {"": run.samples}
        count = sum(leaves.values())
        samples.update(leaves)
        for leaf, share in run.shares.items():
            expected[leaf] += share * count  # type: ignore[assignment]
    count = sum(samples.values())
    error = _distance(samples, expected, count)
    dice = random.Random(count)  # noqa: S311 - the same table of the same runs
    by_chance = sorted(_perfect_sampler(dice, expected) for _ in range(_PERFECT_SAMPLERS))
    limit = by_chance[int(_CHANCE * _PERFECT_SAMPLERS)]
    return ShareError(error, sum(by_chance) / _PERFECT_SAMPLERS, max(0.0, error - limit))


def _distance(samples: Mapping[str, float], expected: Mapping[str, float], count: float) -> float:
    leaves = samples.keys() | expected.keys()
    return sum(abs(samples.get(leaf, 0) - expected.get(leaf, 0)) for leaf in leaves) / count / 2


def _perfect_sampler(dice: random.Random, expected: Mapping[str, float]) -> float:
    """Return the error of independent samples: numbers by leaf that vary as counts do."""
    drawn = {leaf: max(0.0, dice.gauss(mean, mean**0.5)) for leaf, mean in expected.items()}
    count, drawn_count = sum(expected.values()), sum(drawn.values()) or 1.0
    scaled = {leaf: value * count / drawn_count for leaf, value in drawn.items()}
    return _distance(scaled, expected, count)
