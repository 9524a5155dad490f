"""The live part: counts requests, and makes events of the slow ones."""

from __future__ import annotations

import os
from typing import Any

from purebpf.loader.types.kernel_btf import kernel_btf
from purebpf.measure.event_session import Ending, EventSession, loss_of
from purebpf.measure.targets import NoSuchTargetError
from purebpf.observe.instruments.event_stream import Record, StreamRequest
from purebpf.tools.io.event import IoRow, Request, error_name, file_name, op_name
from purebpf.tools.io.request import GROUPINGS, IoOptions

__all__ = ["Io"]

_EACH = ("on_issue", "on_complete")
_BIO_ONLY = 2
"""Parameters of the tracepoint block_getrq, with the context before them, since Linux 5.11. Before,
the queue came first, the bio second, and the direction third."""

_LOSSES = {
    "requests_full": "requests were not followed: more than 16384 were under way",
    "rows_full": "requests were not added up: no row was left. Raise --map-entries",
    "before": "note: requests were under way when the run began",
    "in_flight": "note: requests were under way when it ended",
    "outside_namespace": "times a target task had no ID in this PID namespace",
}


class Io(EventSession[Request]):
    """Measures requests from when its context is entered until `stop()`.

    Args:
        options: the target, and which requests.
        command_pid: a child that waits to execute `options.command` (`purebpf.measure.child`).

    Attributes:
        rows: once it is stopped, all requests added up, those that took most time first.

    Raises, when it is entered: as `EventSession`.
    """

    explained = _LOSSES

    def __init__(self, options: IoOptions, command_pid: int = 0) -> None:
        super().__init__(options, command_pid)
        self._options = options
        self._disks: dict[int, str] = {}
        self.rows: tuple[IoRow, ...] = ()

    def request(self) -> StreamRequest:
        """The programs at the best place of this kernel to learn which task makes a request."""
        options = self._options
        disk = None if options.device is None else _number_of(options.device)
        slower = options.slower_ms
        return StreamRequest(
            "io",
            ("io_event",),
            programs(),
            {
                "grouping": GROUPINGS.index(options.by),
                "slower_ns": (1 << 64) - 1 if slower is None else round(slower * 1e6),
                "has_disk": disk is not None,
                "wanted_disk": disk or 0,
                "only_failed": options.only_failed,
            },
            {"rows": options.rows},
        )

    def make_event(self, record: Record) -> Request:
        """A slow request."""
        fields = record.fields
        head = fields.head
        return Request(
            self.wall_ns(head.time_ns),
            head.tgid,
            head.tid,
            head.uid,
            head.comm,
            head.cgroup,
            self._disk(fields.disk),
            op_name(fields.op),
            fields.sector,
            fields.bytes,
            fields.took_ns,
            fields.queued_ns,
            error_name(fields.error),
            fields.inode,
            file_name(fields.file, fields.folder, fields.inode, fields.file_device),
        )

    def stop(self) -> Ending[Request]:
        """End it, add up, and close.

        Raises:
            KernelError: the kernel refused to return the counts or losses.
        """
        with self._owned:
            self.stream.stop()
            maps = self.stream.object.maps
            rows = [self._row(key, row) for key, row in maps["rows"].items()]
            self.rows = tuple(sorted(rows, key=lambda row: row.total_ns, reverse=True))
            in_flight = sum(
                bool(maker.issued_ns and maker.wanted) for maker in maps["requests"].values()
            )
            losses = self.stream.losses() | {"in_flight": in_flight}
            return Ending(tuple(self.drain()), loss_of(losses, self.explained))

    def _row(self, key: Any, row: Any) -> IoRow:
        return IoRow(
            self._disk(key.disk) if self._options.by == "device" else "",
            key.tgid,
            row.comm if self._options.by == "process" else "",
            file_name(row.file, row.folder, key.inode, key.file_device),
            op_name(key.op),
            row.requests,
            row.errors,
            row.bytes,
            row.total_ns,
            row.queued_ns,
            tuple(row.buckets),
        )

    def _disk(self, number: int) -> str:
        """Return the name of a device, by the kernel's MKDEV() of it; 0 means no device."""
        if number not in self._disks:
            device_name = f"{number >> 20}:{number & 0xFFFFF}"
            try:
                self._disks[number] = os.path.basename(os.readlink(f"/sys/dev/block/{device_name}"))
            except OSError:  # it has gone, or there is no sysfs
                self._disks[number] = device_name if number else "-"
        return self._disks[number]


def programs() -> tuple[str, ...]:
    """Return the programs of bpf_src/io.bpf.c that this kernel has a place for."""
    return (*_makers(), *_EACH)


def _makers() -> tuple[str, ...]:
    btf = kernel_btf()
    if btf.find("btf_trace_block_io_start"):
        return ("on_make",)
    type_ids = btf.find("btf_trace_block_getrq")
    if not type_ids:
        return ()
    pointer: Any = btf.type(btf.resolve(type_ids[0]))
    prototype: Any = btf.type(pointer.type_id)
    return ("on_bio",) if len(prototype.params) == _BIO_ONLY else ("on_bio_of_queue",)


def _number_of(device: str) -> int:
    """The kernel's MKDEV() of a disk by its name or MAJOR:MINOR."""
    name = device.removeprefix("/dev/")
    major, colon, minor = name.partition(":")
    if not colon:
        try:
            with open(f"/sys/class/block/{name.replace('/', '!')}/dev", encoding="ascii") as file:
                major, _, minor = file.read().strip().partition(":")
        except OSError as error:
            raise NoSuchTargetError(
                f"no block device is called {device!r} ({error.strerror}); see: lsblk"
            ) from None
    if not (major.isdecimal() and minor.isdecimal()):
        raise NoSuchTargetError(
            f"{device!r} is not a block device (expected a name or MAJOR:MINOR)"
        )
    return int(major) << 20 | int(minor)
