"""What BPF and tracing leave on a machine without a clean-up, outside of any process.

Programs, maps and links live as long as something holds them; pins, tracefs events, qdiscs and
cgroups live until they are removed, so a forgotten one outlives the test run.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import tempfile
from pathlib import Path

from tests.support import probes

__all__ = ["left", "unmount_left"]

_EVENTS = ("kprobe_events", "uprobe_events", "dynamic_events")


def left() -> dict[str, set[str]]:
    """Everything of that kind that is there now, by kind."""
    mounts = probes.mounts()
    return {
        **{kind: set(map(str, ids)) for kind, ids in probes.kernel_objects().items()},
        "bpf mount": {place for place, kind in mounts if kind == "bpf"},
        "pin": _pins({place for place, kind in mounts if kind == "bpf"}),
        "tracefs event": _tracefs_events({place for place, kind in mounts if kind == "tracefs"}),
        "cgroup": _folders({place for place, kind in mounts if kind == "cgroup2"}),
        "qdisc": _qdiscs(),
    }


def unmount_left() -> list[str]:
    """Unmount what tests that were killed left in the folder of temporary files; return where.

    A second mount of cgroup2 has a test find the first of two, and pins there keep programs.
    """
    begin = os.path.join(tempfile.gettempdir(), "")
    kinds = ("bpf", "cgroup2", "tracefs")
    found = [place for place, kind in probes.mounts() if kind in kinds and place.startswith(begin)]
    for place in found:
        subprocess.run(["umount", place], check=True)
    return found


def _pins(mounts: set[str]) -> set[str]:
    return {
        os.path.join(folder, name)
        for place in mounts
        for folder, _, files in os.walk(place)
        for name in files
    }


def _folders(mounts: set[str]) -> set[str]:
    return {folder for place in mounts for folder, _, _ in os.walk(place)}


def _tracefs_events(mounts: set[str]) -> set[str]:
    found = set()
    for place in mounts:
        for name in _EVENTS:
            file = Path(place, name)
            if file.exists():
                found |= {f"{name}: {line}" for line in file.read_text().splitlines()}
    return found


# rtnetlink(7): a dump request of the queueing disciplines of every interface.
_NEW, _GET, _DONE = 36, 38, 3
_DUMP_REQUEST = 0x301
_HEADER = struct.Struct("=IHHII")
_QDISC = struct.Struct("=BxxxiIII")  # struct tcmsg


def _qdiscs() -> set[str]:
    request = _HEADER.pack(_HEADER.size + _QDISC.size, _GET, _DUMP_REQUEST, 1, 0)
    found: set[str] = set()
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as route:
        route.send(request + bytes(_QDISC.size))
        while True:
            data = route.recv(1 << 16)
            offset = 0
            while offset < len(data):
                length, kind, *_ = _HEADER.unpack_from(data, offset)
                if kind != _NEW:
                    assert kind == _DONE, f"netlink message {kind}"
                    return found
                _, interface, handle, parent, _ = _QDISC.unpack_from(data, offset + _HEADER.size)
                found.add(f"interface {interface} handle {handle:x} parent {parent:x}")
                offset += length + -length % 4
