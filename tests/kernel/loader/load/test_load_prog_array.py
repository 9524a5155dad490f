"""PROG_ARRAYs of an object whose programs are not all loaded."""

from __future__ import annotations

import pytest

import purebpf
from purebpf import build

pytestmark = pytest.mark.needs("bpf", "clang")

_C = """#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
int first(struct __sk_buff *skb);
int second(struct __sk_buff *skb);
struct {
    __uint(type, BPF_MAP_TYPE_PROG_ARRAY);
    __uint(max_entries, 4);
    __uint(key_size, 4);
    __array(values, int (struct __sk_buff *));
} jumps SEC(".maps") = { .values = { [1] = (void *)&first, [2] = (void *)&second } };
SEC("socket") int first(struct __sk_buff *skb) { return 11; }
SEC("?socket") int second(struct __sk_buff *skb) { return 22; }
SEC("socket") int main_program(struct __sk_buff *skb)
{
    bpf_tail_call(skb, &jumps, 2);
    bpf_tail_call(skb, &jumps, 1);
    return 0;
}
char LICENSE[] SEC("license") = "GPL";
"""


def test_a_slot_of_an_optional_program_is_said_to_be_empty() -> None:
    spec = purebpf.read_object(build.compile(_C, cache=False))
    with pytest.warns(RuntimeWarning, match=r"slot 2 of map jumps is empty: its program second"):
        obj = purebpf.load(spec)
    with obj:
        assert obj.programs["main_program"].test_run(bytes(64)).retval == 11
    with purebpf.load(spec.configure("second", autoload=True)) as obj:
        assert obj.programs["main_program"].test_run(bytes(64)).retval == 22


def test_only_leaves_slots_out_without_a_word() -> None:
    spec = purebpf.read_object(build.compile(_C, cache=False))
    with purebpf.load(spec.only("main_program", "first")) as obj:
        assert obj.programs["main_program"].test_run(bytes(64)).retval == 11


def test_replace_takes_a_program() -> None:
    spec = purebpf.read_object(build.compile(_C, cache=False)).only("first")
    with purebpf.load(spec) as obj:
        for wrong in (True, False, "first"):
            with pytest.raises(TypeError, match=f"replace= is the Program .*, not {wrong!r}"):
                obj.programs["first"].attach(0, replace=wrong)
