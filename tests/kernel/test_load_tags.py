"""Declaration tags: exception callbacks, contexts of global functions; and XDP in earnest."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import purebpf
from purebpf.btf.types import DeclTag, Kind
from purebpf.errors import LinkError
from purebpf.relocate import Linker

SPEC = purebpf.read_object(Path(__file__).parents[1] / "data/load_tags.bpf.o")
FRAMES = 211

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf")


@pytest.mark.needs("exceptions")
def test_what_a_program_throws_reaches_its_callback():
    with purebpf.load(SPEC.only("throws")) as obj:
        assert obj.programs["throws"].test_run(bytes(20)).retval == 7
        assert obj.programs["throws"].test_run(bytes(64)).retval == 2 * 64 + 1


def test_a_callback_and_what_it_calls_are_linked_last():
    spec = SPEC._replace(externs={name: e._replace(weak=True) for name, e in SPEC.externs.items()})
    assert list(Linker(spec, []).link("throws").functions) == ["throws", "on_throw", "scaled"]
    assert list(Linker(spec, []).link("measures").functions) == ["measures", "length"]


def test_a_callback_that_is_not_there():
    functions = {name: each for name, each in SPEC.functions.items() if name != "on_throw"}
    with pytest.raises(LinkError, match="on_throw: throws needs this function"):
        Linker(SPEC._replace(functions=functions), []).link("throws")


def test_tags_of_parameters_stay():
    btf = SPEC.btf
    assert btf is not None
    ids = [each for each in range(1, len(btf)) if btf.kind(each) is Kind.DECL_TAG]
    tags = [tag for tag in map(btf.type, ids) if isinstance(tag, DeclTag)]
    (context,) = [tag for tag in tags if tag.name == "arg:ctx"]
    assert (btf.name(context.type_id), context.component) == ("length", 0)


def test_a_global_function_takes_the_context():
    with purebpf.load(SPEC.only("measures")) as obj:
        assert obj.programs["measures"].test_run(bytes(60)).retval == 60


@pytest.mark.needs("live_frames")
def test_frames_in_earnest():
    with purebpf.load(SPEC.only("drops")) as obj:
        context = struct.pack("=IIIIII", 0, 64, 0, 1, 0, 0)  # ingress_ifindex is lo's
        done = obj.programs["drops"].test_run(
            bytes(64), context, repeat=FRAMES, live_frames=True, batch_size=16
        )
        assert done.data == b""
        assert obj.globals["frames"] == FRAMES
