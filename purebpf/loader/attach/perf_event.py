"""Attach to a perf event: the program runs at every sample (perf_event_open(2))."""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

from purebpf.abi.bpf import bpf_attach_type
from purebpf.errors import AttachError, KernelError, NotSupportedError
from purebpf.loader.attach._common.errors import attach_error
from purebpf.loader.programs.link import EventDescriptor, Link
from purebpf.loader.programs.program import Program
from purebpf.syscall import bpf, perf_event
from purebpf.syscall.descriptor import Descriptor

if TYPE_CHECKING:
    from purebpf.loader.features.features import Feature

__all__ = ["attach", "explain_refusal", "link_to_event", "owning_link"]


def attach(
    program: Program, target: EventDescriptor | None, *, cookie: int = 0, enable: bool = True
) -> Link:
    """Run `program` at each sample of the perf event `target`, which stays its owner's.

    Without `enable`, an event that was opened disabled remains so. `cookie` is the value of
    bpf_get_attach_cookie() (Linux 5.15). Before Linux 5.15 (commit b89fbfbb854c) there is no
    bpf_link for perf events: the program then belongs to the event until the event is closed, and
    closing the link disables the event.

    Raises:
        TypeError: no target, or one without `fileno()`.
        AttachError: EEXIST, the event runs a program already; EINVAL, the event takes none.
        NotSupportedError: a cookie, and a kernel that has none.
        ValueError: the program or the event is closed.
        OSError: EMFILE, before Linux 5.15.
    """
    if target is None or not hasattr(target, "fileno"):
        raise TypeError(
            f"program {program.name!r}: target required: a perf event, as in "
            "program.attach(PerfEvent.sampling(frequency=99, cpu=0))"
        )
    description = f"program {program.name!r} on perf event {target!r}"
    link = link_to_event(program, target, description, cookie=cookie)
    if link is None:
        link = _without_link(program, target, description)
    if enable:
        try:
            perf_event.enable(target.fileno())
        except BaseException:
            link.close()
            raise
    return link


def link_to_event(
    program: Program,
    event: EventDescriptor,
    description: str,
    *,
    cookie: int,
    owned: EventDescriptor | None = None,
) -> Link | None:
    """Link a program to a perf event (bpf_link); None when the kernel does not have such links.

    Raises:
        AttachError, NotSupportedError: as `attach`.
    """
    try:
        link = bpf.link_create(
            bpf_attach_type.BPF_PERF_EVENT,
            prog_fd=program.fileno(),
            target_fd=event.fileno(),
            perf_event_bpf_cookie=cookie,
        )
    except KernelError as error:
        if error.errno != errno.EINVAL or (links_supported := _kernel_has_links()):
            raise explain_refusal(error, description) from None
        if cookie:
            raise NotSupportedError("a cookie for a perf event", str(links_supported)) from None
        return None
    return Link(description, link=link, event=owned)


def owning_link(program: Program, event: EventDescriptor, description: str, *, cookie: int) -> Link:
    """A link that ends with `event`, a probe or tracepoint opened for this program alone.

    The event is the link's, and is closed when there is none. Before Linux 5.15 the program is
    merely set on the event.

    Raises:
        AttachError, NotSupportedError: as `attach`.
        ValueError: the program is closed.
    """
    try:
        link = link_to_event(program, event, description, cookie=cookie, owned=event)
        if link is None:
            perf_event.set_bpf(event.fileno(), program.fileno())
            link = Link(description, event=event)
    except KernelError as error:
        event.close()
        raise (
            error if isinstance(error, AttachError) else explain_refusal(error, description)
        ) from None
    except BaseException:
        event.close()
        raise
    return link


def _kernel_has_links() -> Feature:
    from purebpf.loader.features.features import have_perf_event_link

    return have_perf_event_link()


def _without_link(program: Program, event: EventDescriptor, description: str) -> Link:
    """The event runs the program until it is disabled, which its own descriptor can do later."""
    with ExitStack() as stack:
        again = stack.enter_context(Descriptor(os.dup(event.fileno())))
        try:
            perf_event.set_bpf(again.fileno(), program.fileno())
        except KernelError as error:
            raise explain_refusal(error, description) from None
        stack.pop_all()
    return Link(description, event=again)


def explain_refusal(error: KernelError, description: str) -> AttachError:
    """The error of an attachment to a perf event, explained."""
    reasons = {
        errno.EEXIST: "the event already has a program",
        errno.EBUSY: "the event already has a program",
        errno.E2BIG: "the event already has 64 programs, the kernel's maximum",
    }
    return attach_error(error, description, reasons)
