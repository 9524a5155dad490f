"""BPF_PROG_ATTACH: the program belongs to the place, not to a descriptor.

For kernels without a bpf_link for the place, and for replacing a program that was attached this
way. It outlives the process that dies without detaching it; a bpf_link does not.
"""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack
from functools import partial

from purebpf.errors import KernelError
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.program import Program
from purebpf.syscall import bpf
from purebpf.syscall.descriptor import Descriptor

__all__ = ["attach_plainly"]

_GONE = (errno.ENOENT, errno.ENODEV, errno.EINVAL)
"""What detaching says when the program is no longer there, or the place is not."""


def attach_plainly(
    program: Program, target: Descriptor | int, attach_type: int, description: str, **fields: int
) -> Link:
    """A link that detaches `program` from `target` when it is closed.

    `target` is a descriptor, which the link then owns, or the index of an interface.

    Raises:
        KernelError: refused; `target` is closed then.
    """
    with ExitStack() as stack:
        target_fd = target if isinstance(target, int) else stack.enter_context(target).fileno()
        again = stack.enter_context(Descriptor(os.dup(program.fileno())))
        bpf.prog_attach(target_fd, again.fileno(), attach_type, **fields)
        undo = partial(_detach, target_fd, again, attach_type)
        return Link(description, undo=undo, held=stack.pop_all())


def _detach(target_fd: int, program: Descriptor, attach_type: int) -> None:
    try:
        bpf.prog_detach(target_fd, program.fileno(), attach_type)
    except KernelError as error:
        if error.errno not in _GONE:
            raise
