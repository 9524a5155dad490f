"""A program attached to something, and how it ends.

A link is a bpf_link (a descriptor that the kernel knows as one: it has an id, info, and can be
pinned); or, on kernels without bpf_link for perf events, a perf event that runs the program; or
something that has to be undone: a filter of a socket or an interface, a program of a cgroup. All
end with `close()`.
"""

from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Protocol, Self

from purebpf.closable import Closing
from purebpf.errors import KernelError, NotSupportedError
from purebpf.loader.host import pins
from purebpf.loader.host.fork_guard import OwnerProcess
from purebpf.syscall import bpf, perf_event
from purebpf.syscall.descriptor import Descriptor

if TYPE_CHECKING:
    from purebpf.loader.perf.probe_threads import ProbedThread
    from purebpf.loader.programs.link_info import LinkInfo

__all__ = ["EventDescriptor", "Link", "Usable", "take_event"]

_REPLACE = 4  # BPF_F_REPLACE
_CANNOT_DETACH = (errno.EOPNOTSUPP, errno.EINVAL)
"""Kinds of links that only closing ends, and kernels before 5.9 (commit 73b11c2ab072)."""

_DROPPED = (
    ": nothing refers to it any more, so the program is detached. Keep the Link in a variable or "
    "a `with` block, or use Object.attach(), which keeps its links; pin() outlives the process."
)


class EventDescriptor(Protocol):
    """A perf event that a link owns: `PerfEvent`, or a bare `Descriptor`."""

    def fileno(self) -> int:
        """The number of the descriptor."""

    def close(self) -> None:
        """Close it."""


class Held(Protocol):
    """The resources for undoing an attachment, such as an ExitStack of descriptors."""

    def close(self) -> None:
        """Close it."""


class Usable(Protocol):
    """Anything with a descriptor: a program, a map, a socket."""

    def fileno(self) -> int:
        """The number of its descriptor."""


class Link(Closing):
    """A program attached to something; detached by `close()` or the end of a `with` block.

    A pinned bpf_link stays attached after `close()`, until it is unpinned. A Link that is collected
    while open detaches, with a ResourceWarning (which Python shows with `-W default` or `-X dev`):
    unlike libbpf's, it needs a reference. A link that a forked child closes stays attached for its
    parent.

    Attributes:
        what: the program and its target, in words.
        thread: the thread that the kernel ties the program to, where `pid` was given.
    """

    def __init__(
        self,
        what: str,
        *,
        link: Descriptor | None = None,
        event: EventDescriptor | None = None,
        undo: Callable[[], None] | None = None,
        held: Held | None = None,
    ) -> None:
        """Own the attachment.

        Args:
            what: as the attribute.
            link: a bpf_link.
            event: a perf event, which without a `link` runs the program.
            undo: ends an attachment that has neither, for every process; called once.
            held: closed after that.
        """
        self.what = what
        self._link = link
        self._event = event
        self._undo = undo
        self._held = held
        self._owner_process = OwnerProcess()
        self._found = False
        self._pins: list[pins.Pinned] = []
        self._open = True
        self.thread: ProbedThread | None = None

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """The link pinned at `path`, in a bpf file system.

        Raises:
            KernelError: ENOENT, nothing is pinned there; EPERM, EACCES; EINVAL, it is not a link.
        """
        return cls._made_elsewhere(f"the link pinned at {path}", pins.open_link(os.fsdecode(path)))

    @classmethod
    def from_id(cls, link_id: int) -> Self:
        """The link that the kernel knows as `link_id`; needs CAP_SYS_ADMIN.

        Linux 5.8 (commit 2d602c8cf40d).

        Raises:
            KernelError: ENOENT, there is none (any more); EPERM.
        """
        from purebpf.loader.host.ids import open_id

        description = f"link {link_id}"
        return cls._made_elsewhere(
            description, open_id(bpf.link_get_fd_by_id, link_id, description)
        )

    @classmethod
    def all(cls) -> Iterator[Self]:
        """Every link of this machine, opened; the caller closes each (Linux 5.8).

        Raises:
            KernelError: EPERM, no CAP_SYS_ADMIN.
        """
        from purebpf.loader.host.ids import walk

        return walk(bpf.link_get_next_id, cls.from_id)

    @classmethod
    def _made_elsewhere(cls, description: str, descriptor: Descriptor) -> Self:
        link = cls(description, link=descriptor)
        link._found = True
        return link

    @property
    def closed(self) -> bool:
        """True after it was closed or detached."""
        return not self._open

    def fileno(self) -> int:
        """The number of the bpf_link's descriptor, or of the perf event in its place.

        Raises:
            NotSupportedError: it has neither.
            ValueError: it is closed.
        """
        if not self._open:
            raise ValueError(f"{self.what}: the link is closed")
        owned = self._link or self._event
        if owned is None:
            raise NotSupportedError(self.what, "this attachment has no descriptor")
        return owned.fileno()

    @property
    def info(self) -> LinkInfo:
        """The kernel's description of it (Linux 5.8, commit f2e10bff16a0).

        Raises:
            NotSupportedError: it is not a bpf_link.
            ValueError: it is closed.
        """
        from purebpf.loader.programs.link_info import read_info  # a start need not pay for it

        return read_info(self._bpf_link("link info"))

    def update(self, new: Usable, *, old: Usable | None = None) -> None:
        """Run `new` instead of the program that is attached, without a gap in between.

        BPF_LINK_UPDATE (Linux 5.7, commit 0c991ebc8c69).

        Cgroups, XDP, tcx, netkit, network namespaces, sockmaps, iterators; for struct_ops, `new` is
        a map. With `old`, only if `old` is attached now.

        Raises:
            NotSupportedError: it is not a bpf_link, or of a kind that cannot be updated.
            KernelError: EPERM, another program than `old` is attached; EINVAL, `new` is of another
                type or for another hook; ENOLINK, its target is gone.
            AttachError: EINVAL, a member that must be set is not in the new struct_ops map.
            ValueError: it, or a program, is closed.
        """
        prepare = getattr(new, "prepare_update", None)  # of a map: its table must be written first
        if prepare is not None:
            prepare()
        fields = {} if old is None else {"old_prog_fd": old.fileno(), "flags": _REPLACE}
        number = self._bpf_link("updating a link")
        try:
            bpf.link_update(number, new_prog_fd=new.fileno(), **fields)
        except KernelError as error:
            raise self._not_updated(error) from None

    def _not_updated(self, error: KernelError) -> NotSupportedError | KernelError:
        number = error.errno or 0
        if number == errno.EOPNOTSUPP or (number == errno.EINVAL and not self._can_be_updated()):
            reason = "links of this kind keep their program; detach it, then attach again"
            return NotSupportedError(f"updating {self.what}", reason)
        why = {
            errno.EPERM: "the link has another program than the expected one",
            errno.EINVAL: "the new program has another type or attach type",
            errno.ENOLINK: "the attach point no longer exists",
        }.get(number, "")
        return KernelError(error.call, number, self.what, why=why)

    def _can_be_updated(self) -> bool:
        """Return True if the kernel updates links of this kind, or does not tell the kind."""
        from purebpf.loader.programs.link_info import UPDATED

        try:
            return self.info.type in UPDATED
        except KernelError:
            return True

    def pin(self, path: str | os.PathLike[str]) -> None:
        """Give it a name in a bpf file system: it then stays attached without a process.

        Raises:
            NotSupportedError: it is not a bpf_link, and ends with its perf event.
            KernelError: EEXIST, the name is in use; EPERM, not a bpf file system; ENOENT.
            ValueError: it is closed.
        """
        self._pins.append(pins.pin(self._bpf_link("pinning a link"), os.fsdecode(path)))

    def _bpf_link(self, feature: str) -> int:
        if self._open and self._link is None:
            where = "to a perf event, " if self._event is not None else ""
            reason = f"{self.what}: this kernel attached the program {where}without a bpf_link"
            raise NotSupportedError(feature, reason)
        return self.fileno()

    def has_ended(self) -> bool:
        """Return True if the program does not run any more: it is closed, or the thread has ended
        that the kernel tied the probe to (`pid=`). Other threads of that process may go on; attach
        again to see their calls.
        """
        return not self._open or (self.thread is not None and self.thread.has_ended())

    def detach(self) -> None:
        """End the attachment, even if other processes hold it; remove its pins, and close it.

        The kernel can end links of cgroups, network interfaces and namespaces, netfilter, sockmaps
        and struct_ops at once (Linux 5.9, commit 73b11c2ab072). Others last until their last
        reference closes, and for a moment longer (an RCU grace period). Again is harmless, as is a
        pin that is already gone.

        Raises:
            NotSupportedError: another process made it, and only that process can
                end; it stays open.
        """
        if self._open and self._link is not None:
            try:
                bpf.link_detach(self._link.fileno())
            except KernelError as error:
                if error.errno in _CANNOT_DETACH and self._found:
                    reason = f"{self.what}: the link ends when all its holders close or unpin it"
                    raise NotSupportedError("detaching a link of another process", reason) from None
        while self._pins:
            pins.unpin(self._pins.pop())
        self._owner_process = OwnerProcess()
        self.close()

    def close(self) -> None:
        """Let go of it: only a pinned link keeps its program attached. Twice is harmless.

        In a child that the maker of the link forked, the parent's attachment stays as it is.
        """
        self._open = False
        link, self._link = self._link, None
        event, self._event = self._event, None
        undo, self._undo = self._undo, None
        held, self._held = self._held, None
        with ExitStack() as closing:
            for owned in (event, held, link):
                if owned is not None:
                    closing.callback(owned.close)
            if not self._owner_process.is_here:
                return
            if undo is not None:
                undo()
            if link is None and event is not None:
                # The event may live on in its owner's hands: it must at least stop running us.
                with suppress(KernelError):  # the task that it watched is gone, and so is all
                    perf_event.disable(event.fileno())

    def __repr__(self) -> str:
        return f"<Link {self.what}{'' if self._open else ' (closed)'}>"

    def __del__(self) -> None:
        if getattr(self, "_open", False):
            try:  # the warning may be an error
                problem = f"unclosed {self!r}{'' if self._found or self._pins else _DROPPED}"
                warnings.warn(problem, ResourceWarning, stacklevel=2, source=self)
            finally:
                self.close()


def take_event(link: Link) -> EventDescriptor | None:
    """Close a link, and return the perf event that it owned, which the caller closes later.

    None: the link has no event of its own, or there is no bpf_link for events (before Linux 5.15),
    so that closing the event is what detaches the program.
    """
    event = None
    if link._link is not None:  # noqa: SLF001 - of this module
        event, link._event = link._event, None  # noqa: SLF001
    link.close()
    return event
