"""Features are what the kernel does, and bpftool's probes agree."""

from __future__ import annotations

import errno
import json
import subprocess
from functools import cache
from typing import Any

import pytest

import purebpf
from purebpf.abi.bpf import bpf_map_type, bpf_prog_type
from purebpf.abi.helpers import bpf_func_id
from purebpf.btf.types.kinds import Kind
from purebpf.loader.features import features
from purebpf.loader.features.attach_features import KINDS
from purebpf.syscall.backend import replaced
from tests.support.host.backends import Interposer

pytestmark = pytest.mark.needs("bpf")


@pytest.fixture
def _ask_anew():
    features.forget()
    yield
    features.forget()


def test_a_feature_is_true_or_false_and_a_sentence():
    yes = features.have_map_type(bpf_map_type.BPF_MAP_TYPE_HASH)
    assert yes
    assert str(yes) == "map type HASH: yes: the kernel accepted it"
    no = features.have_map_type(9999)
    assert not no
    assert str(no) == "map type 9999: no: bpf(BPF_MAP_CREATE) failed with EINVAL"
    assert not features.have_program_type(9999)


@pytest.mark.parametrize("name", ["ringbuf", "RingBuf", "BPF_MAP_TYPE_RINGBUF"])
def test_types_and_helpers_have_names(name):
    assert features.have_map_type(name) is features.have_ring_buffer()


def test_names_of_program_types_and_helpers():
    kprobe, sock = bpf_prog_type.BPF_PROG_TYPE_KPROBE, bpf_prog_type.BPF_PROG_TYPE_SOCKET_FILTER
    for name in ("kprobe", "bpf_prog_type_kprobe"):
        assert features.have_program_type(name) is features.have_program_type(kprobe)
    for name in ("ktime_get_ns", "bpf_ktime_get_ns", "BPF_FUNC_ktime_get_ns"):
        assert features.have_helper("socket_filter", name) is features.have_helper(sock, 5)


def test_an_unknown_feature_is_refused_and_the_known_ones_are_listed():
    with pytest.raises(KeyError, match=r"unknown map type 'rnigbuf'; .*ringbuf"):
        features.have_map_type("rnigbuf")
    with pytest.raises(KeyError, match=r"unknown program type ''; .*socket_filter, kprobe, "):
        features.have_program_type("")
    with pytest.raises(KeyError, match=r"unknown helper 'get_stakc'; .*get_stack"):
        features.have_helper("kprobe", "get_stakc")
    for name in ("unspec", "__MAX_BPF_MAP_TYPE", "BPF_PROG_TYPE_KPROBE"):
        with pytest.raises(KeyError):
            features.have_map_type(name)


@pytest.mark.usefixtures("_ask_anew")
def test_the_kernel_is_asked_once():
    substitute = Interposer()
    with replaced(substitute):
        assert features.have_ring_buffer() is features.have_ring_buffer()
    assert substitute.commands == ["BPF_MAP_CREATE"]


@pytest.mark.usefixtures("_ask_anew")
def test_without_permission_everything_is_refused_with_the_reason():
    with replaced(Interposer(lambda call: errno.EPERM)):
        found = list(features.all_features())
    assert len(found) > 80
    assert [feature for feature in found if feature] == []
    assert all("EPERM" in feature.reason for feature in found)


def test_every_feature_has_a_name_of_its_own():
    names = [feature.name for feature in features.all_features()]
    assert len(names) == len(set(names))


def test_btf_kinds_of_this_kernel_are_those_it_uses_itself():
    assert features.have_btf_kind(Kind.INT)
    assert features.have_btf_kind(Kind.FUNC_PROTO)


@pytest.mark.parametrize(
    ("program_type", "helper", "known"),
    [
        (bpf_prog_type.BPF_PROG_TYPE_SOCKET_FILTER, bpf_func_id.BPF_FUNC_map_lookup_elem, True),
        (bpf_prog_type.BPF_PROG_TYPE_SOCKET_FILTER, bpf_func_id.BPF_FUNC_redirect_map, False),
        (bpf_prog_type.BPF_PROG_TYPE_XDP, bpf_func_id.BPF_FUNC_redirect_map, True),
        (bpf_prog_type.BPF_PROG_TYPE_PERF_EVENT, bpf_func_id.BPF_FUNC_perf_prog_read_value, True),
        (bpf_prog_type.BPF_PROG_TYPE_KPROBE, bpf_func_id.BPF_FUNC_perf_prog_read_value, False),
        (bpf_prog_type.BPF_PROG_TYPE_KPROBE, 195896080, False),
    ],
)
def test_helpers_by_program_type(program_type, helper, known):
    feature = features.have_helper(program_type, helper)
    assert bool(feature) is known, feature


def test_helpers_of_programs_that_need_a_target_cannot_be_probed():
    with pytest.raises(purebpf.NotSupportedError, match="without a target"):
        features.have_helper(bpf_prog_type.BPF_PROG_TYPE_TRACING, 1)


@cache
def probed_by_bpftool() -> dict[str, Any]:
    """What bpftool finds out about this kernel."""
    probe = ["bpftool", "-j", "feature", "probe", "kernel"]
    found: dict[str, Any] = json.loads(
        subprocess.run(probe, check=True, capture_output=True).stdout
    )
    return found


@pytest.mark.needs("bpftool")
def test_bpftool_finds_the_same_types():
    found = probed_by_bpftool()
    ours = {
        f"have_{each.name.removeprefix('BPF_PROG_TYPE_').lower()}_prog_type": bool(
            features.have_program_type(each)
        )
        for each in list(bpf_prog_type)[1:]
        if each != bpf_prog_type.BPF_PROG_TYPE_TRACING  # bpftool asks for fentry, we for tp_btf
    }
    theirs = found["program_types"]
    common = ours.keys() & theirs.keys()
    assert len(common) > 25
    assert {name for name in common if ours[name] != theirs[name]} == set()
    ours = {
        f"have_{each.name.removeprefix('BPF_MAP_TYPE_').lower()}_map_type": bool(
            features.have_map_type(each)
        )
        for each in list(bpf_map_type)[1:]
    }
    theirs = found["map_types"]
    common = ours.keys() & theirs.keys()
    assert len(common) > 25
    assert {name for name in common if ours[name] != theirs[name]} == set()


@pytest.mark.usefixtures("_ask_anew")
@pytest.mark.parametrize("passing", [errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN])
def test_passing_trouble_is_not_remembered(passing):
    queue = bpf_map_type.BPF_MAP_TYPE_QUEUE
    socket_filter = bpf_prog_type.BPF_PROG_TYPE_SOCKET_FILTER
    helper = bpf_func_id.BPF_FUNC_ktime_get_ns
    with replaced(Interposer(lambda _call: passing)):
        assert not features.have_map_type(queue)
        assert errno.errorcode[passing] in features.have_helper(socket_filter, helper).reason
        assert not features.have_attach("perf_event")
    assert features.have_map_type(queue)
    assert features.have_helper(socket_filter, helper)


def test_every_kind_of_attachment_has_an_answer():
    for kind in KINDS:
        assert features.have_attach(kind).reason
    with pytest.raises(KeyError, match=r"unknown attach kind 'telepathy'; .*kprobe.multi"):
        features.have_attach("telepathy")


@pytest.mark.needs("vmlinux_btf")
def test_attachments_are_as_the_probes_of_the_tests_found_them():
    for kind in ("perf_event", "tp_btf", "raw_tracepoint", "iter", "cgroup_skb"):
        assert features.have_attach(kind), features.have_attach(kind)


@pytest.mark.needs("kprobe_multi")
def test_many_kernel_functions_at_once_are_found():
    assert features.have_attach("kprobe.multi"), features.have_attach("kprobe.multi")


@pytest.mark.needs("bpftool")
def test_what_instructions_may_do_is_what_bpftool_finds():
    found = probed_by_bpftool()["misc"]
    assert bool(features.have_large_programs()) is found["have_large_insn_limit"]
    assert bool(features.have_bounded_loops()) is found["have_bounded_loops"]
    assert bool(features.have_instruction_set(2)) is found["have_v2_isa_extension"]
    assert bool(features.have_instruction_set(3)) is found["have_v3_isa_extension"]


def test_there_are_four_instruction_sets():
    assert features.have_instruction_set(1)
    with pytest.raises(ValueError, match="v5; known: v1 to v4"):
        features.have_instruction_set(5)
