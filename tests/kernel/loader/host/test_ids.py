"""Maps, programs and links of this machine, by number and one after the other."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from pathlib import Path

import pytest

import purebpf
from purebpf.abi.bpf import bpf_link_type, bpf_prog_type
from purebpf.loader.maps.map import Map
from purebpf.loader.programs.link import Link
from purebpf.loader.programs.link_info import RawTracepointLink
from purebpf.loader.programs.program import Program
from purebpf.syscall.backend import replaced
from tests.support.host.backends import Interposer

pytestmark = pytest.mark.needs("bpf")

SPEC = purebpf.read_object(Path(__file__).parents[3] / "data" / "load_attach.bpf.o")
NOBODY = 0x7FFFFFFF


@pytest.fixture
def obj():
    with purebpf.load(SPEC.set(target_pid=os.getpid()).only("on_raw")) as loaded:
        loaded.attach()
        yield loaded


def test_each_is_found_by_its_id_and_among_all(obj):
    program, (link,) = obj.programs["on_raw"], obj.links
    globals_map = obj.maps[".bss"]
    for kind, mine in ((Program, program), (Link, link), (Map, globals_map)):
        with kind.from_id(mine.info.id) as again:
            assert again.info.id == mine.info.id
        found = []
        for each in kind.all():
            with each:
                found.append(each.info.id)
        assert mine.info.id in found
        assert found == sorted(set(found))


def test_a_program_found_by_id_is_as_its_maker_made_it(obj):
    with Program.from_id(obj.programs["on_raw"].info.id) as again:
        assert again.name == "on_raw"
        assert again.type == bpf_prog_type.BPF_PROG_TYPE_RAW_TRACEPOINT
        assert again.section == ""
        with again.attach("sched_switch") as link:
            assert link.info.details == RawTracepointLink("sched_switch", 0)


@pytest.mark.parametrize(
    ("kind", "word"), [(Program, "program"), (Link, "link"), (Map, "map")], ids=str
)
def test_a_number_that_nothing_has(kind, word):
    with pytest.raises(purebpf.KernelError, match=rf"{word} {NOBODY}: .*ENOENT") as caught:
        kind.from_id(NOBODY)
    assert caught.value.errno == errno.ENOENT


def test_what_vanishes_between_its_number_and_its_opening_is_left_out(obj):
    mine = obj.programs["on_raw"].info.id

    def decide(call):
        asked = call.command == "BPF_PROG_GET_FD_BY_ID" and call.field("get_id", "prog_id") == mine
        return errno.ENOENT if asked else None

    with replaced(Interposer(decide)):
        found = []
        for each in Program.all():
            with each:
                found.append(each.info.id)
    assert mine not in found


def test_without_the_right_nothing_is_listed():
    substitute = Interposer(lambda call: errno.EPERM if call.command.endswith("NEXT_ID") else None)
    with (
        replaced(substitute),
        pytest.raises(purebpf.KernelError, match=r"listing BPF objects.*EPERM"),
    ):
        list(Link.all())


@pytest.mark.needs("bpftool")
def test_bpftool_lists_the_same_link(obj):
    (link,) = obj.links
    assert link.info.type == bpf_link_type.BPF_LINK_TYPE_RAW_TRACEPOINT
    command = ["bpftool", "--json", "link", "show", "id", str(link.info.id)]
    shown = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert shown["prog_id"] == link.info.program_id
    assert shown["tp_name"] == link.info.details.name == "sys_enter"
