"""Names of the callers of slow calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from purebpf.symbols.frame import Frame, Unknown

if TYPE_CHECKING:
    from purebpf.kernel.symbolize.symbolizer import Symbolizer

__all__ = ["Callers"]

_PROBES = ("bpf_trampoline_", "bpf_trace_run", "bpf_get_stack", "kprobe_", "kretprobe_", "fprobe_")
_PROBE_PARTS = ("ftrace_trampoline", "rethook", "trace_call_bpf", "perf_trace_", "perf_call_bpf")
"""How the kernel calls programs at functions and tracepoints, by the names of its functions."""


class Callers:
    """Stacks by their numbers, with names.

    Args:
        read: the addresses of a stack, the innermost first; empty if it was lost.
        symbolizer: names them.
    """

    def __init__(self, read: Callable[[int], Sequence[int]], symbolizer: Symbolizer) -> None:
        self._read = read
        self._symbolizer = symbolizer

    def user(self, number: int, pid: int) -> tuple[str, ...]:
        """The user frames of a process."""
        return tuple(map(_spell, self._symbolizer.user_stack(pid, self._read(number))))

    def kernel(self, number: int) -> tuple[str, ...]:
        """The kernel frames, without those of the probe."""
        answers = self._symbolizer.kernel_stack(self._read(number))
        return tuple(map(_spell, _without_probe(answers)))


def _without_probe(answers: Iterable[Frame | Unknown]) -> Iterator[Frame | Unknown]:
    inside = True
    for answer in answers:
        inside = inside and _is_of_probe(answer)
        if not inside:
            yield answer


def _is_of_probe(answer: Frame | Unknown) -> bool:
    if isinstance(answer, Unknown):
        return True
    name = answer.name
    return (
        answer.module == "[bpf]"
        or name.startswith(_PROBES)
        or any(part in name for part in _PROBE_PARTS)
    )


def _spell(answer: Frame | Unknown) -> str:
    return f"{answer.address:#x}" if isinstance(answer, Unknown) else answer.name
