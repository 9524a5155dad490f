"""What is left out for kernels that know less, simulated at the substitute of one that knows more.

The substitute refuses what the old kernel would have refused; everything else is the real kernel.
"""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

import purebpf
from purebpf.btf.types.kinds import Kind
from purebpf.btf.types.parse import Btf
from purebpf.loader.features import features
from purebpf.loader.load.upload_btf import upload_btf
from purebpf.syscall.backend import replaced
from tests.support.builders.btf_builder import BtfBuilder
from tests.support.host.backends import Interposer, memory

pytestmark = pytest.mark.needs("bpf")

DATA = Path(__file__).parents[3] / "data"
COUNTER = purebpf.read_object(DATA / "load_counter.bpf.o")


@pytest.fixture(autouse=True)
def _ask_anew():
    """Answers about the simulated kernel are not for the next test."""
    features.forget()
    yield
    features.forget()


def without_kinds(*kinds: Kind) -> Interposer:
    def decide(call):
        if call.command == "BPF_BTF_LOAD":
            address = call.field("btf_load", "btf")
            btf = Btf(memory(address, call.field("btf_load", "btf_size")))
            if any(btf.kind(type_id) in kinds for type_id in range(1, len(btf))):
                return errno.EINVAL
        return None

    return Interposer(decide)


@pytest.mark.parametrize(
    "kinds",
    [
        (Kind.FLOAT, Kind.DECL_TAG, Kind.TYPE_TAG, Kind.ENUM64),
        (Kind.VAR, Kind.DATASEC),
        (Kind.ENUM64,),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["every_kind", "load_counter"])
def test_simplified_btf_is_accepted_and_keeps_its_ids(kinds, name, every_kind):
    btf = every_kind if name == "every_kind" else COUNTER.btf
    assert btf is not None
    present = {btf.kind(type_id) for type_id in range(1, len(btf))} & set(kinds)
    with replaced(without_kinds(*kinds)), upload_btf(btf) as uploaded:
        assert uploaded.descriptor is not None
        assert uploaded.functions
        assert bool(uploaded.problem) == bool(present)
        for kind in present:
            assert kind.name in uploaded.problem


@pytest.fixture
def every_kind():
    build = BtfBuilder()
    integer = build.int("int", 4, signed=True)
    double = build.float("double", 8)
    choice = build.enum("choice", {"YES": 1, "NO": 0})
    large = build.enum64("large", {"HUGE": 1 << 40, "HUGER": 1 << 50})
    tagged = build.ptr(build.type_tag("user", integer))
    members = [("i", integer), ("d", double), ("c", choice), ("l", large), ("t", tagged)]
    record = build.struct("record", members)
    build.union("either", [("i", integer), ("d", double)])
    build.array(build.const(integer), 3, integer)
    build.ptr(build.restrict(build.ptr(build.volatile(integer))))
    build.ptr(build.fwd("elsewhere"))
    variable = build.var("shared", build.typedef("record_t", record))
    build.datasec(".data.shared", [(variable, 0, 40)], 40)
    build.decl_tag("marked", variable)
    function = build.func("work", build.func_proto(integer, [("argument", integer)]))
    build.decl_tag("parameter", function, 0)
    btf = build.btf()
    assert {btf.kind(type_id) for type_id in range(1, len(btf))} == set(Kind) - {Kind.VOID}
    return btf


def test_a_kernel_without_function_kinds_gets_programs_without_function_info():
    substitute = without_kinds(Kind.FUNC, Kind.FUNC_PROTO)
    with replaced(substitute), purebpf.load(COUNTER) as obj:
        assert obj.programs["count_calls"].info.btf_id == 0
        assert "FUNC" in obj.btf_problem
        assert obj.globals["step"] == 1


def test_a_kernel_without_btf_loads_the_object_all_the_same():
    substitute = Interposer(lambda call: errno.EINVAL if call.command == "BPF_BTF_LOAD" else None)
    with replaced(substitute), purebpf.load(COUNTER) as obj:
        assert obj.programs["count_calls"].info.btf_id == 0
        assert obj.btf_problem


def test_a_kernel_without_program_names_or_function_info():
    def decide(call):
        if call.command != "BPF_PROG_LOAD":
            return None
        named = call.field("prog_load", "prog_name").strip(b"\0")
        informed = call.field("prog_load", "func_info_cnt")
        return errno.E2BIG if named or informed else None

    with replaced(Interposer(decide)), purebpf.load(COUNTER) as obj:
        assert obj.programs["count_calls"].info.name == ""
        assert obj.programs["count_calls"].name == "count_calls"


def test_an_optional_attach_type_is_dropped_and_others_are_not():
    def decide(call):
        refused = call.command == "BPF_PROG_LOAD" and call.field(
            "prog_load", "expected_attach_type"
        )
        return errno.EINVAL if refused else None

    run = purebpf.read_object(DATA / "load_run.bpf.o")
    with replaced(Interposer(decide)), purebpf.load(run.only("flip")) as obj:
        assert obj.programs["flip"].info.type == 6
    attach = purebpf.read_object(DATA / "load_attach.bpf.o")
    with (
        replaced(Interposer(decide)),
        pytest.raises(purebpf.VerifierError, match="'on_btf'"),
    ):
        purebpf.load(attach.only("on_btf"))
