"""How stacks of perf.data files ended: as the file says, or unknown where the kernel walked."""

from __future__ import annotations

import pytest

from purebpf.abi.perf import perf_event_sample_format as bit
from purebpf.observe.saved import perf_data_loader
from purebpf.results import Labels, Profile
from purebpf.results.build.chain_ends import chain_method
from purebpf.results.formats import perf_data
from purebpf.results.model.profile import Marks
from purebpf.results.model.stack_end import (
    CUT,
    WHOLE,
    StackEnd,
    cut_mapping,
    end_of,
    reason_in_path,
    root_frame,
)
from purebpf.symbols.address_spaces import AddressSpaces
from purebpf.symbols.frame import Address, FileOffset, Frame
from purebpf.unwind.reason import Reason
from purebpf.wire.perf_encode import MISC_USER
from purebpf.wire.perf_records import Mmap2, Sample
from tests.support.builders.perf_files import mapped_paths

_MAIN = Frame("main", 4, "/bin/none", Address(0x401234), "user", "ab" * 20, FileOffset(0x1234))
_CUTS = sorted({end_of(reason, 0, None).cut for reason in Reason} - {""})


def saved(*ends: StackEnd) -> bytes:
    profile = Profile("saved", about={"event": "cpu-clock"})
    for weight, end in enumerate(ends, 1):
        stack = (_MAIN, *root_frame(end))
        profile.add(stack, (), weight, Labels("x", 5), marks=Marks(end=end))
    return perf_data.document(profile)


@pytest.mark.parametrize("name", _CUTS)
def test_a_saved_file_says_why_a_stack_is_cut(name: str) -> None:
    data = saved(WHOLE, StackEnd(name))
    profile = perf_data_loader.of_bytes(data, "a.data").profile
    assert {row.weight: row.marks.end.cut for row in profile.rows()} == {1: "", 2: name}
    roots = {row.weight: row.user[-1] for row in profile.rows() if row.user}
    assert roots[2] == root_frame(StackEnd(name))[0]
    assert roots[1].kind != CUT
    assert all(len(row.user or ()) == row.weight for row in profile.rows())
    assert f"[cut: {name}]" in mapped_paths(data)


def test_whole_stacks_have_no_frame_but_their_own() -> None:
    data = saved(WHOLE)
    assert mapped_paths(data) == {"/bin/none"}
    profile = perf_data_loader.of_bytes(data, "a.data").profile
    assert "call_graph" not in profile.about  # an older file does not say how stacks ended


def test_every_reason_has_a_mapping() -> None:
    for name in _CUTS:
        path, start = cut_mapping(StackEnd(name))
        reason = reason_in_path(path)
        assert reason is not None
        assert root_frame(end_of(reason, 0, None))[0].name == root_frame(StackEnd(name))[
            0
        ].name or (name in {"frame_pointers", "compat32", "no_registers"})
        assert start % 4096 == 0 < start
    assert reason_in_path("[cut]") is None
    assert reason_in_path("/bin/[cut: copy_lost]") is None


def sample(*chain: int) -> Sample:
    return Sample(MISC_USER, ip=1, pid=5, tid=5, callchain=chain)


def test_the_kernels_walk_leaves_the_end_open() -> None:
    chains = chain_method(bit.PERF_SAMPLE_IP | bit.PERF_SAMPLE_CALLCHAIN, is_ours=False)
    assert chains is not None
    user = (1 << 64) - 512
    assert chains(sample(user, 10, 11), AddressSpaces())[1:] == ((10, 11), 18, 0)
    kernel = (1 << 64) - 128
    assert chains(sample(kernel, 10, 11), AddressSpaces()) == ((10, 11), (), 0, 0)
    assert chain_method(bit.PERF_SAMPLE_IP, is_ours=False) is None


def test_only_files_of_ours_have_marks() -> None:
    spaces = AddressSpaces()
    path, start = cut_mapping(StackEnd("copy_lost"))
    spaces.feed(Mmap2(5, 5, start, 4096, 0, path, 0, 0, 0, b"", 5, 2, 1))
    user = (1 << 64) - 512
    stray = sample(user, 10, start + 8)
    for is_ours, expected in ((True, ((10,), 9, 0)), (False, ((10, start + 8), 18, 0))):
        chains = chain_method(bit.PERF_SAMPLE_CALLCHAIN, is_ours=is_ours)
        assert chains is not None
        assert chains(stray, spaces)[1:] == expected
