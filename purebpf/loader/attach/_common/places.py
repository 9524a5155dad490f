"""Opens targets of programs: cgroups, network namespaces, infrared receivers."""

from __future__ import annotations

import os

from purebpf.errors import KernelError
from purebpf.loader.host import cgroups
from purebpf.loader.programs.link import Usable
from purebpf.syscall.descriptor import Descriptor

__all__ = [
    "OUR_NAMESPACE",
    "Cgroup",
    "Device",
    "Namespace",
    "open_cgroup",
    "open_namespace",
    "open_receiver",
]

Cgroup = str | os.PathLike[str] | Usable
"""A directory of the cgroup2 file system: its path, or something with `fileno()`."""

Namespace = str | os.PathLike[str] | Usable | None
"""The file of a namespace (`/proc/PID/ns/net`, `/run/netns/NAME`); None: our own."""

Device = str | os.PathLike[str] | Usable
"""The device's file, as a path or something with `fileno()`, open for writing (Linux 6.10)."""

OUR_NAMESPACE = "/proc/thread-self/ns/net"


def open_cgroup(target: Cgroup) -> Descriptor:
    """A descriptor of the directory, the caller's to close.

    Raises:
        KernelError: ENOENT, ENOTDIR: there is none.
    """
    if not isinstance(target, str | os.PathLike):
        return Descriptor(os.dup(target.fileno()))
    return cgroups.open_cgroup_directory(os.fspath(target))


def open_namespace(target: Namespace) -> Descriptor:
    """A descriptor of the namespace, the caller's to close.

    Raises:
        TypeError: no file.
        KernelError: ENOENT, EACCES: it cannot be opened.
    """
    if target is not None and not isinstance(target, str | os.PathLike):
        if not hasattr(target, "fileno"):
            raise TypeError(f"the file of a network namespace is needed, not {target!r}")
        return Descriptor(os.dup(target.fileno()))
    path = OUR_NAMESPACE if target is None else os.fspath(target)
    try:
        return Descriptor(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        call = f"open({path})"
        fix = "" if "/" in path else f"give a path: /run/netns/{path}, or /proc/PID/ns/net"
        raise KernelError(call, error.errno or 0, "the network namespace", fix=fix) from None


def open_receiver(target: Device, description: str) -> Descriptor:
    """Return a new descriptor of a receiver.

    Raises:
        KernelError: `description` failed as the device cannot be opened: ENOENT, EACCES, ENXIO.
    """
    if not isinstance(target, str | os.PathLike):
        return Descriptor(os.dup(target.fileno()))
    path = os.fspath(target)
    try:
        return Descriptor(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        raise KernelError(f"open({path})", error.errno or 0, description) from None
