"""Declaration tags: exception callbacks, contexts of global functions; and XDP in earnest."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from pathlib import Path

import pytest

import purebpf
from purebpf.btf.types.kinds import DeclTag, Func, FuncProto, Kind
from purebpf.btf.types.parse import Btf
from purebpf.btf.types.spelling import spell
from purebpf.errors import LinkError
from purebpf.loader.features import features
from purebpf.loader.load.arg_ctx import with_contexts
from purebpf.relocate import Linker
from purebpf.syscall.backend import replaced
from tests.support.host.backends import Call, Interposer, memory

SPEC = purebpf.read_object(Path(__file__).parents[3] / "data/load_tags.bpf.o")
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


CONTEXTS = purebpf.read_object(Path(__file__).parents[3] / "data/load_contexts.bpf.o")
XDP, TC, KPROBE = 6, 3, 2


@pytest.fixture(params=["as it is", "without the tag"])
def _kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "without the tag":
        monkeypatch.setattr(features, "have_context_tags", lambda: False)


@pytest.mark.usefixtures("_kernel")
def test_the_context_has_any_spelling_on_every_kernel():
    with purebpf.load(CONTEXTS) as obj:
        assert obj.programs["measures"].test_run(bytes(60)).retval == 61
        assert obj.programs["names"].test_run(bytes(60)).retval == 1  # the loopback interface


@pytest.mark.needs("kprobes", "function_addresses")
def test_registers_are_a_context_too():
    with purebpf.load(CONTEXTS.only("counts")) as obj, obj.programs["counts"].attach():
        os.getpriority(os.PRIO_PROCESS, 0)
        assert obj.globals["reached"] > 0


def parameters(types: Btf, copies: Mapping[int, int], name: str) -> list[str]:
    """Those of the copy of a function."""
    copied = [types.type(copy) for copy in copies.values()]
    (function,) = (each for each in copied if isinstance(each, Func) and each.name == name)
    prototype = types.type(function.type_id)
    assert isinstance(prototype, FuncProto)
    return [spell(types, each.type_id) for each in prototype.params]


def test_each_type_of_program_has_copies_with_its_own_context():
    assert CONTEXTS.btf is not None
    types, copies = with_contexts(CONTEXTS, CONTEXTS.btf)
    assert set(copies) == {TC, XDP, KPROBE}
    assert parameters(types, copies[XDP], "interface") == ["struct xdp_md *"] * 2
    assert parameters(types, copies[KPROBE], "length") == ["int", "struct bpf_user_pt_regs_t *"]
    assert parameters(types, copies[TC], "length") == ["int", "struct __sk_buff *"]
    tags = [types.type(each) for each in range(len(CONTEXTS.btf), len(types))]
    assert {each.name for each in tags if isinstance(each, DeclTag)} == {"arg:ctx"}


def test_only_function_info_of_its_type_names_the_copies(monkeypatch):
    called = []

    def look(call: Call) -> None:
        if call.command == "BPF_PROG_LOAD":
            called.append(struct.unpack("=4I", memory(call.field("prog_load", "func_info"), 16)))

    monkeypatch.setattr(features, "have_context_tags", lambda: False)
    with replaced(Interposer(look)):
        purebpf.load(CONTEXTS).close()
    assert CONTEXTS.btf is not None
    assert len(called) == 2
    for _, program, _, function in called:
        assert program < len(CONTEXTS.btf) <= function


@pytest.mark.needs("live_frames")
def test_frames_in_earnest():
    with purebpf.load(SPEC.only("drops")) as obj:
        context = struct.pack("=IIIIII", 0, 64, 0, 1, 0, 0)  # ingress_ifindex is lo's
        done = obj.programs["drops"].test_run(
            bytes(64), context, repeat=FRAMES, live_frames=True, batch_size=16
        )
        assert done.data == b""
        assert obj.globals["frames"] == FRAMES
