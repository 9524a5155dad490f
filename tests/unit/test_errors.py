"""Errors as people read them."""

from __future__ import annotations

import errno

from purebpf.errors import KernelError, errno_name


def test_errors_have_the_kernels_names():
    assert errno_name(errno.EPERM) == "EPERM"
    assert errno_name(524) == "ENOTSUPP", "which Python does not know"
    assert errno_name(4000) == "errno 4000"
    assert "failed with ENOTSUPP" in str(KernelError("bpf(BPF_LINK_CREATE)", 524))
