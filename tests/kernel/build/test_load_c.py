"""A tool in one file, with its C inside."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import purebpf
from purebpf import build
from tests.support.environment import ROOT

pytestmark = [pytest.mark.needs("clang", "bpf", "tracefs"), pytest.mark.any_kernel]

C = """
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

const volatile __u32 target_pid;
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u64);
} calls SEC(".maps");

SEC("tracepoint/syscalls/sys_enter_getppid")
int on_call(void *ctx)
{
	__u32 number = bpf_get_smp_processor_id();
	__u64 one = 1, *count;

	if (bpf_get_current_pid_tgid() >> 32 != target_pid)
		return 0;
	count = bpf_map_lookup_elem(&calls, &number);
	if (count)
		__sync_fetch_and_add(count, 1);
	else
		bpf_map_update_elem(&calls, &number, &one, BPF_ANY);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
"""


def test_a_text_is_compiled_and_loaded() -> None:
    with build.load_c(C, variables={"target_pid": os.getpid()}) as obj:
        obj.attach()
        for _ in range(17):
            os.getppid()
        assert sum(obj.maps["calls"].values()) == 17


def test_errors_name_the_source(tmp_path: Path) -> None:
    with build.load_c(C) as obj, pytest.raises(KeyError, match=r"object 'program': unknown map"):
        obj.maps["cals"]
    file = tmp_path / "counter.bpf.c"
    file.write_text(C)
    with pytest.raises(purebpf.SchemaError, match=r"counter\.bpf\.c: variable target_pid: "):
        build.load_c(file, variables={"target_pid": "x"})


def test_the_example_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "docs/build.md").read_text(), re.DOTALL)
    (example,) = (code for code in examples if "load_c" in code)
    exec(compile(example, "docs/build.md", "exec"), {})
    assert capsys.readouterr().out == "1\n"
