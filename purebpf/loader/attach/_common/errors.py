"""What the kernel's refusal to attach becomes: an AttachError that says why, and what helps."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from types import MappingProxyType

from purebpf.errors import AttachError, KernelError

__all__ = ["attach_error"]


def attach_error(
    error: KernelError,
    what: str,
    reasons: Mapping[int, str] = MappingProxyType({}),
    *capabilities: str,
    fix: str = "",
) -> AttachError:
    """`error` of the attachment `what`, explained.

    `reasons` has the cause of each errno, `fix` what helps against them; without a cause there,
    the error's own are kept. When `capabilities` ("CAP_NET_ADMIN") are what attaching takes, an
    EPERM is explained by this process's.
    """
    number = error.errno or 0
    if number == errno.EPERM and capabilities:
        from purebpf.loader.host.privilege import advice, read_host

        why, fix = advice(read_host(), *capabilities)
    else:
        why, fix = reasons.get(number, error.why), fix or error.fix
    return AttachError(error.call, number, what, why=why, fix=fix)
