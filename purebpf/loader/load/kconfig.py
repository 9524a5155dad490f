"""This kernel's values for `__kconfig` externs: its configuration, and libbpf's additions.

Imported only for an object that has such externs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from purebpf.errors import NotSupportedError
from purebpf.relocate.kconfig import KCONFIG, PREFIX, check_lines, settings, with_values
from purebpf.spec import ObjectSpec
from purebpf.syscall import proc

__all__ = ["configure", "kernel_version"]

_SUBLEVEL_LIMIT = 255


def configure(spec: ObjectSpec, override: str = "") -> ObjectSpec:
    """`spec` with its configuration values filled in.

    Args:
        spec: an object.
        override: lines of a .config that win over this kernel's: `"CONFIG_HZ=1000"`.

    The kernel's configuration is only read for values that `override` does not set.

    Raises:
        NotSupportedError: a value that is not weak is not set; no configuration is available.
        SchemaError: a value that its extern's type does not take; a line of `override` that is not
            a setting, as libbpf's EINVAL for them.
        KernelError: the configuration is there and cannot be read.
    """
    names = {extern.name for extern in spec.externs.values() if extern.section == KCONFIG}
    wanted = {name for name in names if name.startswith(PREFIX)}
    values: dict[str, str | int] = {name: _VIRTUAL[name]() for name in names if name in _VIRTUAL}
    check_lines(override)
    values |= settings(override, wanted)
    if missing := wanted - values.keys():
        values |= settings(_configuration(spec), missing)
    return with_values(spec, values)


def _configuration(spec: ObjectSpec) -> str:
    text = proc.kernel_config()
    if text is None:
        raise NotSupportedError(
            f"{spec.source}: its .kconfig externs",
            f"this kernel does not show its configuration: {proc.PROC}/config.gz and "
            f"{proc.BOOT}/config-{os.uname().release} do not exist; set the values with "
            "load(..., kconfig=text)",
        )
    return text


def kernel_version() -> int:
    """LINUX_VERSION_CODE of the running kernel: 0x50a03 is 5.10.3 (the last part at most 255).

    Ubuntu and Debian call a kernel 5.15.0-91 or 6.1.0-18 and say elsewhere which release that is.
    """
    system = os.uname()
    for pattern, text in (
        (r"\S+ \S+ (\d+)\.(\d+)\.(\d+)", proc.version_signature() or ""),
        (r".*Debian (\d+)\.(\d+)\.(\d+)", system.version),
        (r"(\d+)\.(\d+)\.(\d+)", system.release),
        (r"(\d+)\.(\d+)()", system.release),
    ):
        if text and (version := re.match(pattern, text)):
            major, minor, sublevel = (int(part or 0) for part in version.groups())
            return major << 16 | minor << 8 | min(sublevel, _SUBLEVEL_LIMIT)
    return 0


def _has_cookie() -> int:
    from purebpf.abi.bpf import bpf_prog_type  # most objects only ask for the version
    from purebpf.abi.helpers import bpf_func_id
    from purebpf.loader.features import features

    helper = bpf_func_id.BPF_FUNC_get_attach_cookie
    return int(bool(features.have_helper(bpf_prog_type.BPF_PROG_TYPE_TRACEPOINT, helper)))


def _has_syscall_wrapper() -> int:
    from purebpf.loader.perf.probe_event import has_syscall_wrapper

    return int(has_syscall_wrapper())


_VIRTUAL: dict[str, Callable[[], int]] = {
    "LINUX_KERNEL_VERSION": kernel_version,
    "LINUX_HAS_BPF_COOKIE": _has_cookie,
    "LINUX_HAS_SYSCALL_WRAPPER": _has_syscall_wrapper,
}
"""Values of libbpf's own (bpf_helpers.h, usdt.bpf.h, bpf_tracing.h)."""
