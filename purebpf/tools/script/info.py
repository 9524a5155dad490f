"""`describe_features`: the kernel features that scripts can use on this machine."""

from __future__ import annotations

from purebpf.asm import R0, Program
from purebpf.asm.object import build
from purebpf.errors import PurebpfError
from purebpf.loader.features.features import have_helper
from purebpf.loader.load.load import load
from purebpf.observe.script.local_host import LocalHost
from purebpf.script.btf_types import BtfTypes
from purebpf.script.points import iterators

__all__ = ["describe_features"]

_TEST_FUNCTION = "bpf_fentry_test1"
"""A function that the kernel has for tests of such programs (net/bpf/test_run.c)."""
_HELPERS = (
    ("probe_read", "probe_read"),
    ("probe_read_kernel", "probe_read_kernel"),
    ("send_signal", "send_signal"),
    ("get_ktime_ns", "ktime_get_tai_ns"),
    ("get_func_ip", "get_func_ip"),
    ("jiffies64", "jiffies64"),
    ("lookup_percpu_elem", "map_lookup_percpu_elem"),
)


def describe_features() -> str:
    """Return a list of helpers and kinds of probes, each with "yes" or "no"."""
    host = LocalHost()
    btf = host.btf()
    kernel = BtfTypes(btf) if btf is not None else None
    lines = ["Kernel helpers"]
    for label, helper in _HELPERS:
        lines.append(_line(label, _has(helper)))
    lines.append(_line("dpath", kernel is not None and kernel.function("bpf_d_path") is not None))
    lines += ["Kernel features", _line("Loop support", True), _line("btf", kernel is not None)]
    lines += ["Probe types", _line("kprobe", bool(host.kernel_functions()))]
    lines.append(_line("kprobe_session", False))
    lines.append(_line("fentry", _loads_fentry()))
    lines.append(_line("iter", "task" in iterators(host)))
    return "\n".join((*lines, ""))


def _loads_fentry() -> bool:
    """Return True if the kernel takes programs at the start of its functions."""
    code = Program("probe", f"fentry/{_TEST_FUNCTION}")
    code.move(R0, 0)
    code.exit()
    try:
        load(build("probe", [code], [])).close()
    except PurebpfError:
        return False
    return True


def _has(helper: str) -> bool:
    try:
        return bool(have_helper("raw_tracepoint", helper))
    except (PurebpfError, KeyError, ValueError):
        return False


def _line(label: str, is_there: bool) -> str:
    return f"  {label}: {'yes' if is_there else 'no'}"
