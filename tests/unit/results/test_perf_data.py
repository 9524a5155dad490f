"""perf.data of a profile: what is in it, record by record."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest
from hypothesis import given, settings

from purebpf.errors import FormatError, NotSupportedError
from purebpf.results import Labels, Marks, Profile
from purebpf.results.formats import folded, perf_data
from purebpf.symbols.frame import Address, FileOffset, Frame
from purebpf.wire.callchain import stacks
from purebpf.wire.perf_data import Feature
from purebpf.wire.perf_data_features import BuildId, unpack_build_ids
from purebpf.wire.perf_data_reader import PerfData
from purebpf.wire.perf_encode import HOST_KERNEL
from purebpf.wire.perf_records import Comm, Mmap, Mmap2, Record, Sample
from tests.support.builders import profiles

SOME = settings(max_examples=40)


def opened(profile: Profile) -> PerfData:
    data = perf_data.document(profile)
    return PerfData(lambda at, size: data[at : at + size], len(data))


def records(profile: Profile) -> list[Record]:
    return [placed.record for placed in opened(profile).records()]


@dataclasses.dataclass
class Replayed:
    """What a reader keeps of the records before a sample."""

    comms: dict[int, str] = dataclasses.field(default_factory=dict)
    mappings: list[Mmap2] = dataclasses.field(default_factory=list)

    def where(self, pid: int, address: int) -> tuple[str, int]:
        """File and offset of an address: the newest mapping says so."""
        for each in reversed(self.mappings):
            if each.pid == pid and each.addr <= address < each.addr + each.length:
                return each.filename, address - each.addr + each.pgoff
        return "", -1


def at(name: str, address: int, module: str, offset: int) -> Frame:
    return Frame(name, 4, module, Address(address), "user", "ab" * 20, FileOffset(offset))


def real() -> Profile:
    """A process that executed another program, which has its file at the same addresses."""
    found = Profile("real", about={"event": "cpu-clock", "kernel_build_id": "cd" * 20})
    one = at("one", 0x401234, "/bin/one", 0x1234)
    two = at("two", 0x401300, "/bin/two", 0x300)
    other = at("other", 0x7F0000002000, "/lib/libc.so.6", 0x2000)
    read = Frame("vfs_read", 0x50, "kernel", Address(0xFFFFFFFF81200050), "kernel")
    enter = Frame("do_syscall_64", 0x10, "kernel", Address(0xFFFFFFFF81000110), "kernel")
    found.add((one, other), (), 1, Labels("one", 5))
    found.add((two, other), (read, enter), 2, Labels("two", 5))
    found.add((one, other), (), 4, Labels("thread", 5, 6))
    found.add((two,), (), 8, Labels("again", 5))
    return found


def test_every_address_is_where_the_profile_has_it() -> None:
    profile = real()
    replayed, found = Replayed(), Counter[object]()
    for record in records(profile):
        if isinstance(record, Comm):
            replayed.comms[record.tid] = record.comm
        elif isinstance(record, Mmap2):
            replayed.mappings.append(record)
        elif isinstance(record, Sample):
            path = tuple(replayed.where(record.pid, each) for each in stacks(record).user)
            found[replayed.comms[record.tid], path, stacks(record).kernel] += record.period
    assert found == Counter(
        {
            (
                row.labels.comm,
                tuple((entry.module, entry.file_offset) for entry in row.user or ()),
                tuple(entry.address for entry in row.kernel or ()),
            ): row.weight
            for row in profile.rows()
        }
    )


def test_the_kernel_is_related_to_a_function_of_it() -> None:
    (kernel,) = (each for each in records(real()) if isinstance(each, Mmap))
    assert kernel.pid == HOST_KERNEL
    assert kernel.filename == "[kernel.kallsyms]do_syscall_64"
    assert kernel.pgoff == 0xFFFFFFFF81000100
    packed = opened(real()).feature(Feature.BUILD_ID)
    assert packed
    assert set(unpack_build_ids(packed)) == {
        BuildId("[kernel.kallsyms]", b"\xcd" * 20, is_kernel=True),
        *(BuildId(name, b"\xab" * 20) for name in ("/bin/one", "/bin/two", "/lib/libc.so.6")),
    }


def test_times_are_those_of_the_profile() -> None:
    waits = Profile("waits", unit="ns", about={"started_ns": 10, "ended_ns": 1000})
    for ended_ns in (700, 300, 0):
        waits.add((), (), 5, Labels("app", 1, 1), marks=Marks(ended_ns=ended_ns))
    timed = profiles.timed()
    timed.about["started_ns"] = 5
    found = [
        [(each.time, each.period) for each in records(profile) if isinstance(each, Sample)]
        for profile in (waits, timed)
    ]
    assert found[0] == [(300, 5), (700, 5), (1000, 5)]
    assert found[1] == [(5, 1), (60_000_005, 5), (180_000_005, 4)]
    assert [opened(each).events[0].name for each in (waits, timed)] == ["offcpu-time", "samples"]


def test_addresses_may_be_as_far_apart_as_there_are_any() -> None:
    profile = Profile()
    for address in (0, (1 << 64) - 1):
        frame = Frame("f", 0, "module", Address(address), "kernel")
        profile.add((), (frame,), 1, Labels("app"))
    (mapping,) = (each for each in records(profile) if isinstance(each, Mmap))
    assert (mapping.addr, mapping.length) == (0, (1 << 64) - 1)


@SOME
@given(profiles.profiles())
def test_weights_are_kept(profile: Profile) -> None:
    try:
        found = records(profile)
    except NotSupportedError:
        assert not any(
            entry.address
            for row in profile.rows()
            for entry in (*(row.user or ()), *(row.kernel or ()))
        )
        return
    samples = [each for each in found if isinstance(each, Sample)]
    assert sum(each.period for each in samples) == profile.total
    assert len(samples) == len(profile.rows())


def test_hostile_names_are_names() -> None:
    names = {each.filename for each in records(profiles.hostile()) if isinstance(each, Mmap2)}
    assert "line\nbreak\r\tand tab" in names
    assert "?? lone" in names


def test_names_without_addresses_are_refused() -> None:
    with pytest.raises(NotSupportedError, match="addresses, and these stacks have only names"):
        perf_data.document(folded.parse(["a;b;c 1"]))
    assert [type(each) for each in records(Profile("nothing"))] == [Comm]


@pytest.mark.parametrize("labels", [Labels("a", -1), Labels("a", 1 << 40), Labels("a" * 70000, 1)])
def test_labels_that_perf_data_cannot_hold_are_refused(labels: Labels) -> None:
    profile = Profile("odd")
    profile.add((profiles.MAIN,), (), 1, labels)
    with pytest.raises(FormatError, match=r"odd: perf\.data"):
        perf_data.document(profile)
