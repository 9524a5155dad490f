"""Attach to a receiver of infrared light: `lirc_mode2`, for each pulse and space (Linux 4.18).

Commit f4364dcfc86d. There is no bpf_link for it: the device holds the program until the link is
closed, or it is gone.
"""

from __future__ import annotations

import errno
import os

from purebpf.abi.bpf import bpf_attach_type
from purebpf.errors import AttachError, KernelError
from purebpf.loader.attach._common.errors import attach_error
from purebpf.loader.attach._common.places import Device, open_receiver
from purebpf.loader.attach._common.prog_attach import attach_plainly
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program

__all__ = ["attach"]


_WHY = {
    errno.EINVAL: "the target is not a raw lirc device, or this kernel was built without "
    "CONFIG_BPF_LIRC_MODE2",
    errno.EEXIST: "the program is already attached there",
    errno.E2BIG: "the device already has 64 programs, the kernel's maximum",
    errno.ENODEV: "the lirc device was removed",
}


def attach(program: Program, target: Device | None = None) -> Link:
    """Run `program` for every pulse and space that the receiver `target` sees.

    Args:
        program: a `lirc_mode2` program, which reports pressed keys (bpf_rc_keydown()).
        target: the device, `"/dev/lirc0"`.

    Raises:
        TypeError: no device.
        ValueError: the program is closed.
        KernelError: ENOENT, ENXIO: there is no such device.
        AttachError: EINVAL, it is not such a receiver; EEXIST, the program is there already; EPERM,
            no CAP_NET_ADMIN, or a descriptor for reading only.
    """
    if not isinstance(target, str | os.PathLike) and not hasattr(target, "fileno"):
        raise TypeError(
            f"program {program.name!r}: target required: a lirc device such as '/dev/lirc0'"
        )
    assert target is not None
    description = f"program {program.name!r} on lirc device {target}"
    try:
        device = open_receiver(target, description)
        return attach_plainly(program, device, bpf_attach_type.BPF_LIRC_MODE2, description)
    except KernelError as error:
        if error.call.startswith("open("):
            raise
        raise _explain_refusal(error, description) from None


def _explain_refusal(error: KernelError, description: str) -> AttachError:
    if error.errno != errno.EPERM:
        return attach_error(error, description, _WHY)
    from purebpf.loader.host.privilege import advise_or

    why, fix = advise_or("CAP_NET_ADMIN", otherwise="the device was opened read-only")
    return AttachError(error.call, errno.EPERM, description, why=why, fix=fix)
