"""`describe_features`: the kernel features that scripts can use on this machine."""

from __future__ import annotations

from purebpf.errors import PurebpfError
from purebpf.loader.features.features import have_helper
from purebpf.observe.script.local_host import LocalHost

__all__ = ["describe_features"]

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
    lines = ["Kernel helpers"]
    for label, helper in _HELPERS:
        lines.append(f"  {label}: {_word(_has(helper))}")
    lines += [
        "Kernel features",
        "  Loop support: yes",
        f"  btf: {_word(host.btf() is not None)}",
        "Probe types",
    ]
    lines.append(f"  kprobe_session: {_word(False)}")
    lines.append(f"  kprobe: {_word(bool(host.kernel_functions()))}")
    return "\n".join((*lines, ""))


def _has(helper: str) -> bool:
    try:
        return bool(have_helper("raw_tracepoint", helper))
    except (PurebpfError, KeyError, ValueError):
        return False


def _word(present: bool) -> str:
    return "yes" if present else "no"
