"""Turns the kernel's refusal to attach into an AttachError with the reason and advice."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from types import MappingProxyType

from purebpf.errors import AttachError, KernelError

__all__ = ["attach_error"]


def attach_error(
    error: KernelError,
    description: str,
    reasons: Mapping[int, str] = MappingProxyType({}),
    *capabilities: str,
    fix: str = "",
) -> AttachError:
    """`error` of the attachment `description`, explained.

    `reasons` has the cause of each errno, `fix` the advice against them; without a cause there, the
    error keeps its own. When attaching needs `capabilities` ("CAP_NET_ADMIN"), this process's
    capabilities explain an EPERM.
    """
    number = error.errno or 0
    if number == errno.EPERM and capabilities:
        from purebpf.loader.host.privilege import advice, read_host

        why, fix = advice(read_host(), *capabilities)
    else:
        why, fix = reasons.get(number, error.why), fix or error.fix
    return AttachError(error.call, number, description, why=why, fix=fix)
