"""What programs print, and what the kernel reports of them, in streams of their own."""

from __future__ import annotations

import pytest

import purebpf

pytestmark = pytest.mark.needs("bpf", "clang", "vmlinux_btf")

C = """
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

SEC("syscall")
int say(void *ctx)
{
    for (int i = 0; i < 500; i++)
        bpf_stream_printk(BPF_STDOUT, "%d of %s\\n", i, "five hundred");
    bpf_stream_printk(BPF_STDERR, "no value\\n");
    return 0;
}

char LICENSE[] SEC("license") = "GPL";
"""
SILENT = """
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

SEC("syscall")
int say(void *ctx)
{
    return 0;
}

char LICENSE[] SEC("license") = "GPL";
"""


@pytest.mark.needs("streams")
def test_all_that_was_printed_is_read_once():
    with purebpf.build.load_c(C) as obj:
        say = obj.programs["say"]
        assert say.read_stream() == ""
        say.test_run(ctx=b"")
        assert say.read_stream().splitlines() == [f"{i} of five hundred" for i in range(500)]
        assert say.read_stream() == ""
        assert say.read_stream("stderr") == "no value\n"
        with pytest.raises(ValueError, match="unknown stream 'out'; known: stdout, stderr"):
            say.read_stream("out")
    with pytest.raises(ValueError, match="closed"):
        say.read_stream()


@pytest.mark.needs("no_streams")
def test_a_kernel_without_streams_is_named():
    with (
        purebpf.build.load_c(SILENT) as obj,
        pytest.raises(purebpf.NotSupportedError, match=r"streams of programs.* Linux 6\.17"),
    ):
        obj.programs["say"].read_stream()
