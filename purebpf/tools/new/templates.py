"""The files of a new tool, with NAME in place of its name."""

from __future__ import annotations

__all__ = ["FILES"]

_C = """\
// Counts the calls of getppid(2) of one process, and reports each.
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

const volatile __u32 target_pid; // set before the program is loaded

struct call {
	__u64 time_ns;
	__u32 pid;
	char comm[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} calls SEC(".maps");

struct call *calls_record; // says what the records of `calls` are
__u64 lost;

SEC("tracepoint/syscalls/sys_enter_getppid")
int on_call(void *ctx)
{
	__u32 pid = bpf_get_current_pid_tgid() >> 32;
	struct call *call;

	if (pid != target_pid)
		return 0;
	call = bpf_ringbuf_reserve(&calls, sizeof(*call), 0);
	if (!call) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	call->time_ns = bpf_ktime_get_ns();
	call->pid = pid;
	bpf_get_current_comm(call->comm, sizeof(call->comm));
	bpf_ringbuf_submit(call, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
"""

_INIT = '''\
"""A BPF tool: `python -m NAME PID`."""
'''

_MAIN = '''\
"""Print each getppid(2) of a process: python -m NAME PID [SECONDS]."""

from __future__ import annotations

import argparse
import sys

from NAME import NAME_bpf


def main(arguments: list[str]) -> int:
    """Trace until Ctrl-C, or for some seconds without an event."""
    parser = argparse.ArgumentParser("NAME", description="Print each getppid(2) of a process.")
    parser.add_argument("pid", type=int, metavar="PID")
    parser.add_argument("seconds", type=float, nargs="?", metavar="SECONDS")
    options = parser.parse_args(arguments)
    with NAME_bpf.load_own(target_pid=options.pid) as obj:
        obj.attach()
        try:
            for call in obj.maps["calls"].read(timeout=options.seconds):
                print(call.time_ns, call.pid, call.comm, flush=True)
        except KeyboardInterrupt:
            pass
        print(f"lost: {obj.globals['lost']}", file=sys.stderr)
    return 0


def command() -> None:
    """The program NAME."""
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    command()
'''

_TEST = '''\
"""The object holds what the tool needs; and, with the privileges for it, counts exactly."""

from __future__ import annotations

import os

import pytest

from NAME import NAME_bpf


def test_the_object_is_there() -> None:
    spec = NAME_bpf.read_own()
    assert [*spec.programs] == ["on_call"]
    assert spec.license == "GPL"


@pytest.mark.bpf  # skipped, with the reason, where BPF programs cannot be loaded
def test_every_call_is_reported() -> None:
    with NAME_bpf.load_own(target_pid=os.getpid()) as obj:
        obj.attach()
        for _ in range(7):
            os.getppid()
        calls = list(obj.maps["calls"].read(timeout=0))
        assert [call.pid for call in calls] == [os.getpid()] * 7
        assert obj.globals["lost"] == 0
'''

_CONFTEST = '''\
"""Compiles what changed before the tests run."""

from pathlib import Path

from purebpf.build import generate

generate(Path(__file__).parent / "NAME")
'''

_PYPROJECT = """\
[build-system]
requires = ["setuptools>=69", "purebpf[build]"]
build-backend = "setuptools.build_meta"

[project]
name = "NAME"
version = "0.1"
description = "A BPF tool"
requires-python = ">=3.11"
dependencies = ["purebpf"]

[project.scripts]
NAME = "NAME.__main__:command"

[tool.setuptools]
packages = ["NAME"]
cmdclass = {build_py = "purebpf.build.hook.BuildPy"}

[tool.setuptools.package-data]
NAME = ["*.bpf.o"]

[tool.pytest.ini_options]
testpaths = ["tests"]
"""

_IGNORE = """\
__pycache__/
/build/
/dist/
*.egg-info/
*.bpf.o
*_bpf.py
"""

_README = """\
# NAME

| file | what it is |
|---|---|
| `NAME/NAME.bpf.c` | the BPF program |
| `NAME/NAME_bpf.py`, `NAME/NAME.bpf.o` | made of it: a typed module, and the object |
| `NAME/__main__.py` | the tool |
| `tests/test_NAME.py` | its test |

    pytest                                     # compiles what changed, then tests
    sudo "$(command -v python)" -m NAME PID    # runs the tool
    pip wheel --no-deps .                      # a wheel with the object; hosts need no compiler
"""

FILES = {
    "NAME/NAME.bpf.c": _C,
    "NAME/__init__.py": _INIT,
    "NAME/__main__.py": _MAIN,
    "tests/test_NAME.py": _TEST,
    "conftest.py": _CONFTEST,
    "pyproject.toml": _PYPROJECT,
    ".gitignore": _IGNORE,
    "README.md": _README,
}
"""By path below the folder."""
