"""A program attached to something, and how it ends.

A link is either a bpf_link (a descriptor that the kernel knows as one: it has an id, info, and
can be pinned) or, on kernels without bpf_link for perf events, a perf event that runs the
program. Both end with `close()`.
"""

from __future__ import annotations

import os
import warnings
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from purebpf.abi.bpf import bpf_link_type
from purebpf.abi.layouts import BPF_LINK_INFO
from purebpf.errors import KernelError, NotSupportedError
from purebpf.kernel import pins
from purebpf.syscall import bpf, perf_event
from purebpf.syscall.descriptor import Descriptor

__all__ = ["Event", "Link", "LinkInfo"]


class Event(Protocol):
    """A perf event that a link owns: `PerfEvent`, or a bare `Descriptor`."""

    def fileno(self) -> int:
        """The number of the descriptor."""

    def close(self) -> None:
        """Close it."""


class LinkInfo(NamedTuple):
    """What the kernel says about a bpf_link.

    Attributes:
        id: its number, as in `bpftool link`.
        type: enum bpf_link_type; a plain int when it is newer than our tables.
        program_id: the number of its program.
    """

    id: int
    type: int
    program_id: int


class Link:
    """A program attached to something; detached by `close()` or the end of a `with` block.

    A bpf_link that was pinned stays attached after `close()`, until it is unpinned. A Link that
    is collected while open warns (ResourceWarning), and detaches.

    Attributes:
        what: what is attached to what, in words.
    """

    def __init__(
        self,
        what: str,
        *,
        link: Descriptor | None = None,
        event: Event | None = None,
    ) -> None:
        """Own `link` (a bpf_link) and `event` (a perf event); without a link, the event runs it."""
        self.what = what
        self._link = link
        self._event = event
        self._pins: list[str] = []
        self._open = True

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """The link pinned at `path`, in a bpf file system.

        Raises:
            KernelError: ENOENT, nothing is pinned there; EPERM, EACCES; EINVAL, it is no link.
        """
        return cls(f"the link pinned at {path}", link=pins.open_link(os.fspath(path)))

    @property
    def closed(self) -> bool:
        """Whether it was closed or detached."""
        return not self._open

    def fileno(self) -> int:
        """The number of the bpf_link's descriptor, or of the perf event that stands in for one.

        Raises:
            ValueError: it is closed.
        """
        owned = self._link or self._event
        if not self._open or owned is None:
            raise ValueError(f"{self.what}: the link is closed")
        return owned.fileno()

    @property
    def info(self) -> LinkInfo:
        """What the kernel says about it (Linux 5.8).

        Raises:
            NotSupportedError: it is no bpf_link.
            ValueError: it is closed.
        """
        data = bytearray(BPF_LINK_INFO.size)
        bpf.obj_get_info_by_fd(self._bpf_link("link info"), data)
        fields = BPF_LINK_INFO.unpack(data)
        number, kind, program = (fields[name] for name in ("id", "type", "prog_id"))
        assert isinstance(number, int)
        assert isinstance(kind, int)
        assert isinstance(program, int)
        known = kind in bpf_link_type._value2member_map_
        return LinkInfo(number, bpf_link_type(kind) if known else kind, program)

    def pin(self, path: str | os.PathLike[str]) -> None:
        """Give it a name in a bpf file system: it then stays attached without a process.

        Raises:
            NotSupportedError: it is no bpf_link, and ends with its perf event.
            KernelError: EEXIST, the name is taken; EPERM, not a bpf file system; ENOENT.
            ValueError: it is closed.
        """
        name = os.fspath(path)
        pins.pin(self._bpf_link("pinning a link"), name)
        self._pins.append(name)

    def _bpf_link(self, feature: str) -> int:
        number = self.fileno()
        if self._link is None:
            reason = "this kernel attached the program to a perf event, without a bpf_link"
            raise NotSupportedError(feature, reason)
        return number

    def detach(self) -> None:
        """Remove the pins it was given here, and close it, so that the program no longer runs.

        The kernel takes a moment (an RCU grace period) to let go of what was pinned. Again is
        harmless, and so is a pin that is already gone.
        """
        while self._pins:
            try:
                os.unlink(self._pins.pop())
            except FileNotFoundError:
                continue
        self.close()

    def close(self) -> None:
        """Let go of it: only a pinned link keeps its program attached. Twice is harmless."""
        self._open = False
        link, self._link = self._link, None
        event, self._event = self._event, None
        try:
            if link is not None:
                link.close()
            elif event is not None:
                # The event may live on in its owner's hands: it must at least stop running us.
                perf_event.disable(event.fileno())
        except KernelError:  # the task that the event watched is gone, and so is the attachment
            pass
        finally:
            if event is not None:
                event.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Link {self.what}{'' if self._open else ' (closed)'}>"

    def __del__(self) -> None:
        if getattr(self, "_open", False):
            warnings.warn(f"unclosed {self!r}", ResourceWarning, stacklevel=2, source=self)
            self.close()
