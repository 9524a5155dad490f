"""Stacks that a BPF program kept once each (bpf_src/include/stacks.h): from numbers to names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Protocol

from purebpf.results.build.strip_sched_frames import without_switch
from purebpf.results.model.loss import Cause
from purebpf.results.model.profile import Profile, Stack
from purebpf.results.model.stack_end import (
    CUT,
    WHOLE,
    StackEnd,
    end_of,
    end_of_merged,
    root_frame,
)
from purebpf.symbols.frame import Frame, Reason, Unknown, without_stray_tail
from purebpf.symbols.python_words import DEEP_PYTHON_FRAMES, PYTHON_FRAMES
from purebpf.unwind.reason import Reason as Ended

__all__ = ["AddressNames", "Stacks", "causes", "count_truncated", "with_caller"]

# enum stack_id
_NONE = 0
_FIRST = 16

_NO_END = (0, 0)

Answers = Sequence[Frame | Unknown]


class AddressNames(Protocol):
    """Names addresses: `purebpf.observe.symbols.symbolizer.Symbolizer`."""

    def kernel_stack(self, addresses: Sequence[int]) -> Answers:
        """Name a kernel stack."""
        ...

    def user_stack(self, pid: int, addresses: Sequence[int], comm: str | None = None) -> Answers:
        """Name a user stack."""
        ...

    def return_slot(self, pid: int, address: int, comm: str | None = None) -> int | None:
        """Return the distance from the stack pointer to a leaf's return address; None: unknown."""
        ...


class Stacks:
    """Named stacks by number.

    Args:
        addresses: of each number, leaf first.
        names: looks addresses up.
        ends: how user stacks ended, by number: (`purebpf.unwind.reason.Reason`, guessed frames).
            One that is not whole gets a frame at its root that says so.
    """

    def __init__(
        self,
        addresses: Mapping[int, Sequence[int]],
        names: AddressNames,
        ends: Mapping[int, tuple[int, int]] | None = None,
    ) -> None:
        # not methods of `self`: a cache of its own methods would keep it, and all names, alive
        def kernel(number: int) -> Stack | None:
            return _name_stack(addresses, number, names.kernel_stack)

        def name_user(number: int, pid: int, comm: str) -> tuple[Stack | None, StackEnd]:
            reason, guessed = ends.get(number, _NO_END) if ends else _NO_END

            def look_up(stack: Sequence[int]) -> Answers:
                if reason == Ended.FRAME_POINTERS and guessed:
                    stack = with_caller(stack, guessed, names.return_slot(pid, stack[0], comm))
                return names.user_stack(pid, stack, comm)

            stack = _name_stack(addresses, number, look_up)
            if stack is None or not addresses.get(number):
                return stack, WHOLE
            end = WHOLE
            if ends is not None and number in ends:
                root = stack[-1] if stack else None  # none has a name: stubs of a JVM
                end = end_of(reason, 0 if reason == Ended.FRAME_POINTERS else guessed, root)
            unmarked, end = end_of_merged(stack, end)
            return (*unmarked, *root_frame(end)), end

        named = cache(name_user)

        named_kernel = cache(kernel)
        self.kernel: Callable[[int], Stack | None] = named_kernel
        """The kernel stack with a number; None for one that was lost."""
        self.waiting_kernel: Callable[[int], Stack | None] = cache(
            lambda number: without_switch(named_kernel(number))
        )
        """The same without what every switch has."""
        self.user: Callable[[int, int, str], Stack | None] = lambda *of: named(*of)[0]
        """The user stack with a number, of a process and a comm; None for one that was lost."""
        self.end: Callable[[int, int, str], StackEnd] = lambda *of: named(*of)[1]
        """How that stack ended."""


def with_caller(stack: Sequence[int], words: int, slot: int | None) -> Sequence[int]:
    """A stack by frame pointers, with the caller of a leaf without a frame.

    Args:
        stack: addresses, and behind them the words of `words`.
        words: bit n is set if the word 8 * n above the leaf's stack pointer is there, as a call may
            have left it: enum leaf_words in bpf_src/include/user_stacks.h.
        slot: how far above the stack pointer the leaf has its return address; None: not known.
            Of arm64 0: in x30, which is the word of bit 0.
    """
    frames, candidates = stack[: -words.bit_count()], stack[-words.bit_count() :]
    if slot is None or slot & 7 or not words >> (slot >> 3) & 1:
        return frames
    caller = candidates[(words & (1 << (slot >> 3)) - 1).bit_count()]
    return (*frames[:1], caller, *frames[1:])


def _name_stack(
    addresses: Mapping[int, Sequence[int]],
    number: int,
    look_up: Callable[[Sequence[int]], Answers],
) -> Stack | None:
    if number == _NONE:
        return ()
    stack = addresses.get(number)
    if number < _FIRST or stack is None:
        return None
    return without_stray_tail(look_up(stack))


_MEASURES = ("ns", "bytes")
"""Units of weights that are no numbers of events."""


def count_truncated(profile: Profile, max_depth: int) -> int:
    """Return how many user stacks lack their roots, in a profile whose rows were newly named.

    The kernel's walk may fill all its frames because it strayed: its random frames are cut off
    again (`without_stray_tail`), and such a stack has lost nothing. A row counts as often as its
    stack was walked: its waits, or its weight where events are counted; where nobody counted, once.
    Stacks that were unwound from copies may be deeper, and whole, or cut for other reasons.
    """
    is_measured = profile.unit in _MEASURES
    return sum(
        row.marks.times or (1 if is_measured else row.weight)
        for row in profile.rows()
        if row.user and _is_full(row.user, row.marks.end, max_depth) and not _has_strayed(row.user)
    )


def _is_full(stack: Stack, end: StackEnd, max_depth: int) -> bool:
    cut = end.cut
    return cut == "too_deep" or (cut == "unverified" and _depth(stack) >= max_depth)


def _depth(stack: Stack) -> int:
    return len(stack) - (stack[-1].kind == CUT)


def _has_strayed(stack: Stack) -> bool:
    root = stack[-1]
    if root.kind == CUT and len(stack) > 1:
        root = stack[-2]
    return isinstance(root, Unknown) and root.reason is Reason.GARBAGE


def causes(
    stats: Mapping[str, int],
    unit: str,
    *,
    storage_size: int,
    max_depth: int,
    room: int,
    rarer: str,
) -> tuple[Cause, ...]:
    """Return the losses of stacks: `stacks_lost`, `truncated` and `unavailable`.

    Args:
        stats: `struct stack_stats` by field, summed over the CPUs; `user_truncated` is the result
            of `count_truncated`.
        unit: the owners of the stacks: "samples".
        storage_size: the value of --stack-storage-size.
        max_depth: the most frames of a stack.
        room: frames that there is room for.
        rarer: advice that makes updates meet less often: "Lower -F".
    """
    user, kernel = stats["user_truncated"], stats["kernel_truncated"]
    no_user, no_kernel = stats["user_unavailable"], stats["kernel_unavailable"]
    return (
        Cause(
            "stacks_lost",
            stats["stacks_full"] + stats["stacks_crowded"] + stats["stacks_busy"],
            _lost(stats, unit, storage_size, rarer),
        ),
        Cause(
            "truncated",
            user + kernel,
            _truncated(user, kernel, max_depth, room),
        ),
        Cause(
            "unavailable",
            no_user + no_kernel,
            f"{no_user} user and {no_kernel} kernel stacks could not be read (bpf_get_stack "
            "failed)",
        ),
    )


def _lost(stats: Mapping[str, int], unit: str, storage_size: int, rarer: str) -> str:
    parts = []
    if stats["stacks_full"]:
        parts.append(
            f"{stats['stacks_full']} {unit} without their stack (table full: --stack-storage-size "
            f"{2 * storage_size})"
        )
    if stats["stacks_crowded"]:
        parts.append(
            f"{stats['stacks_crowded']} lost their stack: too many others have the same hash"
        )
    if stats["stacks_busy"]:
        parts.append(
            f"{stats['stacks_busy']} interrupted an update of the stack map and lost their "
            f"stack. {rarer}"
        )
    return "; ".join(parts)


def _truncated(user: int, kernel: int, max_depth: int, room: int) -> str:
    kinds = [f"{count} {kind}" for count, kind in ((user, "user"), (kernel, "kernel")) if count]
    lacking = f"callers in {' and '.join(kinds)} stacks: {max_depth} frames are kept"
    if max_depth < room:
        return f"{lacking} (sysctl kernel.perf_event_max_stack={room})"
    if not user:
        return lacking
    from purebpf.unwind.unwinder import MAX_FRAMES  # 8 modules, for few profiles

    python = f"{PYTHON_FRAMES} of Python (deep: {DEEP_PYTHON_FRAMES})"
    return f"{lacking} (--call-graph deep: {MAX_FRAMES}), {python}"
