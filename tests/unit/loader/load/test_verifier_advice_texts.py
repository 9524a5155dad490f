"""Advice for lines as other kernels word them, and for those that take long to provoke."""

from __future__ import annotations

import pytest

from purebpf.loader.load.verifier import explain
from purebpf.loader.load.verifier_advice import Refusal, advise

LINES = {7: "t.bpf.c:12: sk = bpf_sk_lookup_tcp(ctx, &tuple, 36, -1, 0);"}


def advice(line: str, log: str = "", **more: str) -> str:
    fields = {"source": "t.bpf.c:30: call(v->a, w[3]);", "section": "?tc", "license": "GPL"}
    return advise(
        Refusal(line=line, log=log, source_of=lambda at: LINES.get(at, ""), **(fields | more))
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("R1 invalid mem access 'inv'", "takes it for a number"),
        ("back-edge from insn 7 to 3", "a bound that the verifier sees"),
        ("BPF program is too large. Processed 1000001 insn", "follows each turn of each loop"),
        ("The sequence of 8193 jumps is too complex.", "follows each turn of each loop"),
        ("unknown func bpf_get_stackid#27", 'programs in SEC("tc") cannot call bpf_get_stackid()'),
        (
            "At program exit the register R0 has value (0x7; 0x0) should have been in (0x0; 0x1)",
            "must return a value in (0x0; 0x1)",
        ),
        ("combined stack size of 2 calls is 544. Too large", "512 bytes of stack"),
        ("invalid indirect read from stack off -16+4 size 8", "initialise all of the variable"),
        ("invalid read from stack R2 off -16+4 size 8", "initialise all of the variable"),
        ("invalid read from stack off -16+0 size 8", "initialise all of the variable"),
        ("invalid write to stack R10 off=-520 size=8", "512 bytes of stack"),
        ("R0 !read_ok", "return a value at the end"),
        ("BPF_STX uses reserved fields", "need Linux 5.12"),
        ("unreachable insn 5", "-Wall"),
        ("dereference of modified ctx ptr R1 off=8 disallowed", "at constant offsets"),
        (
            "BPF_EXIT instruction in main prog cannot be used inside bpf_rcu_read_lock-ed region",
            "call bpf_rcu_read_unlock() first, on every path",
        ),
        (
            "cannot call GPL only function from proprietary program",
            "this needs a license compatible with the GPL; the object's is 'GPL'",
        ),
        ("helper call might sleep in non-sleepable prog", 'put the program into SEC("tc.s")'),
        ("something that no kernel says", ""),
    ],
)
def test_advice_by_the_deciding_line(line, expected):
    said = advice(line)
    assert expected in said
    assert bool(said) is bool(expected)


def test_two_pointers_in_a_line_are_not_guessed_between():
    log = "6: (85) call bpf_map_lookup_elem#1     ; R0_w=map_value_or_null(id=1,off=0,ks=4,vs=8)\n"
    assert advice("R0 invalid mem access 'map_value_or_null'", log) == (
        "check the pointer for NULL before line 30: bpf_map_lookup_elem() may return NULL"
    )


def test_a_socket_that_is_not_released_is_shown_where_it_was_taken():
    log = "7: (85) call bpf_sk_lookup_tcp#84\nUnreleased reference id=2 alloc_insn=7\n"
    assert advice(explain(log).line, log) == (
        f"call bpf_sk_release() on every path to the end for what is acquired at {LINES[7]}"
    )


def test_a_missing_license_is_said_to_be_missing():
    line = "cannot call GPL-restricted function from non-GPL compatible program"
    said = advice(line, "4: (85) call bpf_probe_read_kernel#113\n", license="")
    assert said.startswith(
        "bpf_probe_read_kernel() needs a license compatible with the GPL; the object's is missing"
    )
