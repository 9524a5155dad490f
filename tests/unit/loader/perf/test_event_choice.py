"""Events as they are written: modifiers, terms of performance units, and mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from purebpf.abi.perf import perf_hw_id, perf_sw_ids, perf_type_id
from purebpf.loader.perf.event_parser import EventError, choose_event, split
from purebpf.loader.perf.perf_names import event_named, known_names
from purebpf.syscall import proc


@pytest.fixture(autouse=True)
def sysfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with one performance unit."""
    unit = tmp_path / "bus/event_source/devices/cpu"
    (unit / "format").mkdir(parents=True)
    (unit / "events").mkdir()
    (unit / "type").write_text("4\n")
    (unit / "format/event").write_text("config:0-7,32-35\n")
    (unit / "format/umask").write_text("config:8-15\n")
    (unit / "format/any").write_text("config:21\n")
    (unit / "format/ldlat").write_text("config1:0-15\n")
    (unit / "events/mem-loads").write_text("event=0xcd,umask=0x1,ldlat=3\n")
    monkeypatch.setattr(proc, "SYS", str(tmp_path))


@pytest.mark.parametrize(
    ("text", "event", "attr"),
    [
        ("cycles", (perf_type_id.PERF_TYPE_HARDWARE, perf_hw_id.PERF_COUNT_HW_CPU_CYCLES), {}),
        (
            "page-faults:u",
            (perf_type_id.PERF_TYPE_SOFTWARE, perf_sw_ids.PERF_COUNT_SW_PAGE_FAULTS),
            {"exclude_kernel": 1, "exclude_hv": 1},
        ),
        (
            "instructions:kpp",
            (perf_type_id.PERF_TYPE_HARDWARE, perf_hw_id.PERF_COUNT_HW_INSTRUCTIONS),
            {"exclude_user": 1, "exclude_hv": 1, "precise_ip": 2},
        ),
        ("cs:uk", (perf_type_id.PERF_TYPE_SOFTWARE, 3), {"exclude_hv": 1}),
        ("LLC-load-misses:I", (perf_type_id.PERF_TYPE_HW_CACHE, 0x10002), {"exclude_idle": 1}),
        ("r01c2:p", (perf_type_id.PERF_TYPE_RAW, 0x1C2), {"precise_ip": 1}),
        ("cpu/event=0x3c/", (4, 0x3C), {}),
        ("cpu/event=0xfff,umask=2,any/", (4, 0xF_0020_02FF), {}),
        ("cpu/mem-loads/pp", (4, 0x1CD), {"config1": 3, "precise_ip": 2}),
        ("cpu/config=5,period=1000/", (4, 5), {"sample_period": 1000, "freq": 0}),
        ("cpu/config=5,freq=99/", (4, 5), {"sample_period": 99, "freq": 1}),
        ("mem:0x404040", (5, 0), {"bp_type": 3, "bp_addr": 0x404040, "bp_len": 4}),
        ("mem:4096/8:w", (5, 0), {"bp_type": 2, "bp_addr": 4096, "bp_len": 8}),
        (
            "mem:0x10:x:u",
            (5, 0),
            {"bp_type": 4, "bp_addr": 16, "bp_len": 8, "exclude_kernel": 1, "exclude_hv": 1},
        ),
    ],
)
def test_each_spelling_chooses_its_event(
    text: str, event: tuple[int, int], attr: dict[str, int]
) -> None:
    found = choose_event(text)
    assert found.event[:3] == (text, *event)
    assert found.attr == attr
    assert not found.is_tracepoint


def test_an_event_can_be_named() -> None:
    assert choose_event("cpu/event=0x3c,name=mine/").event.name == "mine"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cycels", "did you mean cycles"),
        ("", "without a name"),
        ("{cycles,instructions}", "groups are not supported"),
        ("cycles:z", "unknown modifier 'z'"),
        ("cycles:pppp", "at most 3 p"),
        ("cpu/event=0x3c", "the closing / is missing"),
        ("gpu/event=1/", "unknown PMU 'gpu'; did you mean cpu?"),
        ("cpu/evnt=1/", "does not have a term 'evnt'; did you mean event"),
        ("cpu/event=x/", "event=x is not a number"),
        ("cpu/umask=0x100/", "0x100 does not fit umask (config:8-15)"),
        ("cpu/config=0x10000000000000000/", "does not fit in 64 bits"),
        ("../x/event=1/", "unknown PMU"),
    ],
)
def test_mistakes_are_explained(text: str, said: str) -> None:
    with pytest.raises(EventError, match=said.replace("(", r"\(").replace(")", r"\)")):
        choose_event(text)


def test_every_known_name_is_an_event() -> None:
    assert {"cycles", "cpu-clock", "dTLB-store-misses", "minor-faults"} <= known_names()
    assert all(event_named(name).name == name for name in known_names())


def test_lists_are_split_outside_of_slashes() -> None:
    assert split("a,b/c=1,d/p,e") == ["a", "b/c=1,d/p", "e"]


@pytest.mark.parametrize("text", ["mem:", "mem:main", "mem:0x10/3", "mem:0x10:rx", "mem:0x10/4/"])
def test_a_breakpoint_is_an_address_a_size_and_an_access(text: str) -> None:
    with pytest.raises(EventError, match="expected mem:ADDRESS"):
        choose_event(text)


def test_the_size_of_a_breakpoint_does_not_hide_a_comma() -> None:
    assert split("mem:0x10/4:w,cpu/event=1,umask=2/,cs") == [
        *("mem:0x10/4:w", "cpu/event=1,umask=2/", "cs"),
    ]
