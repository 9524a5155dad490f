"""The line about who uses the disks, above the places of waits."""

from __future__ import annotations

from purebpf.cli.destination import Destination, ResultOptions
from purebpf.results import Labels, Marks, Profile
from purebpf.symbols.frame import Address, Frame
from purebpf.tools.offcpu.render import render, waits_for_disks


def waits(kernel: str) -> Profile:
    profile = Profile("", unit="ns")
    user = (Frame("read_record", 0, "/srv/recordd", Address(1), "user"),)
    frames = (Frame(kernel, 0, "[kernel]", Address(2), "kernel"),)
    profile.add(user, frames, 2_000_000_000, Labels("recordd", 7, 7), marks=Marks())
    return profile


def test_who_uses_the_disk_stands_above_waits_for_it() -> None:
    profile = waits("io_schedule")
    assert waits_for_disks(profile)
    assert not waits_for_disks(waits("tcp_recvmsg"))
    view = ResultOptions(to=(Destination("text", None),))
    text = "".join(map(str, render(profile, view, "text", notes=["the disk is used by x"])))
    assert text.startswith("the disk is used by x\n")
    assert "read_record" in text
