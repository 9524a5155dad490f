"""Programs that the verifier refuses, each for one of the commonest reasons, and what helps."""

from __future__ import annotations

from pathlib import Path

import purebpf

__all__ = ["ADVICE", "SPEC", "line_of"]

_DATA = Path(__file__).parents[2] / "data"
SPEC = purebpf.read_object(_DATA / "load_advice.bpf.o")
_LINES = (_DATA / "load_advice.bpf.c").read_text().splitlines()


def line_of(program: str, text: str) -> int:
    """The number of the first line with `text` from the program's own on."""
    start = next(i for i, line in enumerate(_LINES) if line.startswith(f"int {program}("))
    return next(i for i in range(start, len(_LINES)) if text in _LINES[i]) + 1


ADVICE = {
    "unchecked_value": (
        "v->count",
        "check `v` for NULL before line {line}: bpf_map_lookup_elem() may return NULL",
    ),
    "unchecked_record": (
        "*event = 1",
        "check `event` for NULL before line {line}: bpf_ringbuf_reserve() may return NULL",
    ),
    "unchecked_member": (
        "bpf_get_current_comm",
        "check `v` for NULL before line {line}: bpf_map_lookup_elem() may return NULL",
    ),
    "unchecked_argument": (
        "bpf_map_update",
        "check argument 3 of bpf_map_update_elem() for NULL before line {line}",
    ),
    "endless_branch": ("", "give the loop a bound that the verifier sees"),
    "unbounded_index": ("v->marks", "bound the index before line {line}: make it unsigned"),
    "beyond_the_value": (
        "[16]",
        "the map's value has 56 bytes, and line {line} takes 4 at offset 64",
    ),
    "unbounded_length": (
        "bpf_probe",
        "bound argument 2 of bpf_probe_read_kernel() before line {line}",
    ),
    "too_long": (
        "bpf_probe",
        "line {line} takes 32 bytes, but the variable there has 16 at most",
    ),
    "unbounded_stack": ("room[wanted]", "bound the index before line {line}"),
    "unchecked_packet": ("", "compare with data_end first"),
    "leaked_record": (
        "bpf_ringbuf_reserve",
        (
            "call bpf_ringbuf_submit() or bpf_ringbuf_discard() on every path to the end for what "
            "is acquired at load_advice.bpf.c:{line}: "
            "__u64 *event = bpf_ringbuf_reserve(&ring, 8, 0);"
        ),
    ),
    "unset_argument": ("", "a program has one argument, its context"),
    "kernel_pointer": ("", "read kernel memory with BPF_CORE_READ() or bpf_probe_read_kernel()"),
    "after_submit": ("", "and not after bpf_ringbuf_submit()"),
    "number_for_pointer": ("", "argument 2 of bpf_map_lookup_elem() must be one of: fp, pkt"),
    "helper_of_others": ("", 'programs in SEC("xdp") cannot call bpf_get_stackid()'),
    "beyond_the_context": (
        "",
        'programs in SEC("xdp") cannot access 4 bytes at offset 64 of their context',
    ),
    "moved_context": ("", "access the context at constant offsets"),
    "odd_return": ("", 'a program in SEC("cgroup/connect4") must return a value in '),
    "other_map": (
        "",
        "bpf_perf_event_output() does not take a map of type HASH: it takes a PERF_EVENT_ARRAY",
    ),
    "constant_written": ("", "declare the variable without const"),
}
