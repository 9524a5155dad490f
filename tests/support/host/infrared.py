"""The receiver of infrared light that hears itself: rc-loopback's."""

from __future__ import annotations

import struct
from pathlib import Path

from purebpf.abi.bpf import bpf_prog_type
from purebpf.loader.features import features
from tests.support.host import modules

__all__ = ["MODULE", "missing", "receiver", "send"]

MODULE = "rc_loopback"


def receiver() -> Path | None:
    """Its device, or None."""
    for found in Path("/sys/class/lirc").glob("lirc*"):
        if "DRV_NAME=rc-loopback" in (found / "device/uevent").read_text():
            return Path("/dev", found.name)
    return None


def missing() -> str:
    """Why there is none, or programs for it; its module is loaded in a guest that has it."""
    if not (known := features.have_program_type(bpf_prog_type.BPF_PROG_TYPE_LIRC_MODE2)):
        return known.reason
    modules.offer(MODULE)
    return "" if receiver() else "no receiver of infrared light that hears itself (rc-loopback)"


def send(device: Path, *durations_us: int) -> None:
    """A pulse, and after it spaces and pulses in turns; the last is a pulse."""
    with device.open("wb", buffering=0) as transmitter:
        transmitter.write(struct.pack(f"={len(durations_us)}I", *durations_us))
