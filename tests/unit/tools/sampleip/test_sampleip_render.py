"""The lines of sampleip, and its bytes as perf script prints them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from purebpf.abi.perf import PERF_EVENT_ATTR
from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.symbols.frame import Address, Frame, Reason, Unknown
from purebpf.tools.sampleip.loss import losses
from purebpf.tools.sampleip.render import count_lines, dump, sample_line
from purebpf.tools.sampleip.request import SampleIpOptions
from purebpf.wire.perf_data import RecordedEvent
from purebpf.wire.perf_data_writer import PerfDataWriter
from purebpf.wire.perf_encode import RecordEncoder
from purebpf.wire.perf_records import Sample


class Event(NamedTuple):
    ip: int = 0xFFFFFFFF81214C3C
    time_ns: int = 3058_117_379_123
    cpu: int = 1
    tgid: int = 6501
    tid: int = 6502
    comm: str = "dd"


WHERE = Frame("vfs_read", 0x111, "kernel", Address(0xFFFFFFFF81214C3C), "kernel")


def test_one_sample_is_one_line() -> None:
    assert sample_line(Event(), WHERE) == (
        "   3058.117379   1 dd               6501/6502       ffffffff81214c3c "
        "vfs_read+0x111 [kernel]\n"
    )


def test_the_greatest_count_is_last() -> None:
    nobody = Unknown(Reason.EXITED, "", Address(0x1000), "user")
    assert list(count_lines([(0x2000, 0, 9, WHERE), (0x1000, 77, 3, nobody)])) == [
        "0x0000000000001000      77         3 [unknown]\n",
        "0x0000000000002000       -         9 vfs_read+0x111 [kernel]\n",
    ]


def test_bytes_are_shown_eight_in_a_row() -> None:
    data = bytes.fromhex("3c4c2181ffffffff00000000")
    assert dump(Event(), data) == (
        "dd 6502 3058.117379:\n"
        "      BPF output: 0000: 3c 4c 21 81 ff ff ff ff  <L!.....\n"
        "                  0008: 00 00 00 00              ....    \n"
        "\n"
    )


@pytest.mark.needs("perf")
@pytest.mark.parametrize("payload", [bytes(range(12)), b"some text\0\0\0", bytes(60)])
def test_perf_prints_the_same_bytes(payload: bytes, tmp_path: Path) -> None:
    parts = bit.PERF_SAMPLE_IP | bit.PERF_SAMPLE_TID | bit.PERF_SAMPLE_TIME
    parts |= bit.PERF_SAMPLE_RAW
    attr = PERF_EVENT_ATTR.pack(type=1, config=10, size=136, sample_type=parts, sample_id_all=1)
    with (tmp_path / "perf.data").open("wb") as file:
        writer = PerfDataWriter(file, [RecordedEvent("bpf-output", bytes(attr))])
        sample = Sample(0, pid=6501, tid=6502, time=1, raw=payload)
        writer.write(RecordEncoder(parts).encode(sample))
        writer.finish({})
    printed = subprocess.run(
        ["perf", "script", "-i", "perf.data", "-F", "comm,pid,time,bpf-output"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    ).stdout
    theirs = re.findall(r"^ +(?:BPF output: )?[0-9a-f]{4}: .*$", printed, re.MULTILINE)
    assert [line for line in dump(Event(), payload).splitlines()[1:] if line] == theirs


def test_every_loss_is_named() -> None:
    names = (
        *("output_full", "output_none", "output_failed", "counts_full", "counts_busy"),
        "outside_namespace",
    )
    nothing = dict.fromkeys(names, 0)
    assert [cause.lost for cause in losses(nothing, SampleIpOptions())] == [0] * 6
    each = dict(zip(names, range(1, 7), strict=True))
    assert [cause.lost for cause in losses(each, SampleIpOptions())] == [1, 2, 3, 4, 5, 6]
    assert "at 8192" in losses(each, SampleIpOptions())[3].what
