"""What bpf(2) and perf_event_open(2) take: the members of their attributes."""

from __future__ import annotations

import re
import sys

import pytest

from purebpf.tools.trace.events import Call
from purebpf.tools.trace.render import describe
from tests.commands.trace.test_trace import events_of

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf")

CALLS = r"""
import ctypes, struct
call = ctypes.CDLL(None, use_errno=True).syscall
def bpf(command, attributes):
    return call(321, command, attributes, len(attributes))
def at(value):
    return ctypes.cast(value, ctypes.c_void_p).value
key, value, path = ctypes.c_int(3), ctypes.c_long(7), ctypes.c_char_p(b"/sys/fs/bpf/nothing")
map_fd = bpf(0, struct.pack("IIIIIII16s", 2, 4, 8, 10, 0x400, 0, 0, b"mine"))
bpf(2, struct.pack("I4xQQQ", map_fd, ctypes.addressof(key), ctypes.addressof(value), 2))
bpf(1, struct.pack("I4xQQQ", map_fd, ctypes.addressof(key), ctypes.addressof(value), 0))
bpf(4, struct.pack("I4xQQ", map_fd, 0, ctypes.addressof(key)))
bpf(7, struct.pack("QII", at(path), 0, 8))
bpf(11, ctypes.create_string_buffer(12))
code = struct.pack("BBhiBBhi", 0xB7, 0, 0, 0, 0x95, 0, 0, 0)
license = ctypes.c_char_p(b"Dual BSD/GPL")
bpf(5, struct.pack("IIQQIIQII16s", 1, 2, at(code), at(license), 0, 0, 0, 0x60102, 0, b"mine"))
bpf(8, struct.pack("iII", -1, 77, 1))
bpf(28, struct.pack("IIII", 77, 5, 37, 2))
bpf(999, b"1234")
"""


def test_the_members_of_a_command_are_shown() -> None:
    python = (sys.executable, "-S", "-E", "-c")
    events = events_of(*python, CALLS, events=("bpf",))
    texts = [describe(event) for event in events if isinstance(event, Call)]
    shown = [re.sub(r"0x[0-9a-f]{5,}", "ADDRESS", re.sub(r"\) += .*", ")", text)) for text in texts]
    fd = texts[0].rpartition("= ")[2]
    number = texts[5].partition("=> ")[2].partition("}")[0]
    assert shown == [
        (
            "bpf(BPF_MAP_CREATE, {map_type=BPF_MAP_TYPE_ARRAY, key_size=4, value_size=8, "
            'max_entries=10, map_flags=BPF_F_MMAPABLE, map_name="mine"}, 44)'
        ),
        (
            f"bpf(BPF_MAP_UPDATE_ELEM, {{map_fd={fd}, key=ADDRESS, value=ADDRESS, "
            "flags=BPF_EXIST}, 32)"
        ),
        f"bpf(BPF_MAP_LOOKUP_ELEM, {{map_fd={fd}, key=ADDRESS, value=ADDRESS}}, 32)",
        f"bpf(BPF_MAP_GET_NEXT_KEY, {{map_fd={fd}, key=NULL, next_key=ADDRESS}}, 24)",
        'bpf(BPF_OBJ_GET, {pathname="/sys/fs/bpf/nothing", file_flags=0x8}, 16)',
        f"bpf(BPF_PROG_GET_NEXT_ID, {{start_id=0, next_id=0 => {number}}}, 12)",
        (
            "bpf(BPF_PROG_LOAD, {prog_type=BPF_PROG_TYPE_SOCKET_FILTER, insn_cnt=2, insns=ADDRESS, "
            'license="Dual BSD/GPL", kern_version=KERNEL_VERSION(6, 1, 2), prog_name="mine"}, 64)'
        ),
        (
            "bpf(BPF_PROG_ATTACH, {target_fd=-1, attach_bpf_fd=77, "
            "attach_type=BPF_CGROUP_INET_EGRESS}, 12)"
        ),
        "bpf(BPF_LINK_CREATE, {prog_fd=77, target_fd=5, attach_type=BPF_XDP, flags=0x2}, 16)",
        "bpf(0x3e7, ADDRESS, 4)",
    ]
    assert int(number) > 0


OPENS = r"""
import ctypes, struct
call = ctypes.CDLL(None, use_errno=True).syscall
def opened(kind, size, config, *rest):
    words = struct.pack(f"IIQ{len(rest)}Q", kind, size, config, *rest)
    call(298, words.ljust(size, b"\0"), 0, -1, -1, 8)
opened(1, 64, 3, 0, 0, 3, 1 | 1 << 12)
opened(0, 136, 1, 99, 1 | 1 << 5, 0, 1 << 10 | 2 << 15, 0, 7)
opened(4, 112, 0x1C2, 0, 0, 0, 0)
"""


def test_the_members_of_an_event_are_shown() -> None:
    python = (sys.executable, "-S", "-E", "-c")
    events = events_of(*python, OPENS, events=("perf_event_open",))
    texts = [describe(event) for event in events if isinstance(event, Call)]
    shown = [text.partition("({")[2].partition("}")[0].split(", ") for text in texts]
    assert shown == [
        [
            "type=PERF_TYPE_SOFTWARE",
            "size=PERF_ATTR_SIZE_VER0",
            "config=PERF_COUNT_SW_CONTEXT_SWITCHES",
            "sample_period=0",
            "sample_type=0",
            "read_format=PERF_FORMAT_TOTAL_TIME_ENABLED|PERF_FORMAT_TOTAL_TIME_RUNNING",
            "disabled=1",
            "enable_on_exec=1",
            "precise_ip=0 /* arbitrary skid */",
            "...",
        ],
        [
            "type=PERF_TYPE_HARDWARE",
            "size=0x88",
            "config=PERF_COUNT_HW_INSTRUCTIONS",
            "sample_freq=99",
            "sample_type=PERF_SAMPLE_IP|PERF_SAMPLE_CALLCHAIN",
            "read_format=0",
            "freq=1",
            "precise_ip=2 /* requested to have 0 skid */",
            "config1=0x7",
            "...",
        ],
        [
            "type=PERF_TYPE_RAW",
            "size=PERF_ATTR_SIZE_VER5",
            "config=0x1c2",
            "sample_period=0",
            "sample_type=0",
            "read_format=0",
            "precise_ip=0 /* arbitrary skid */",
            "...",
        ],
    ]
