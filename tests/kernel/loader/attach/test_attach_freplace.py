"""Functions of loaded programs, replaced by others and watched."""

from __future__ import annotations

from pathlib import Path

import pytest

import purebpf
from purebpf.abi.bpf import bpf_link_type
from purebpf.loader.programs.link_info import TracingLink

pytestmark = pytest.mark.needs("bpf", "vmlinux_btf")

SPEC = purebpf.read_object(Path(__file__).parents[3] / "data" / "load_replace.bpf.o")
FRAME = bytes(64)
DROP, PASS = 1, 2

replaces = pytest.mark.needs("freplace")


@pytest.fixture
def original():
    with purebpf.load(SPEC.only("ask", "ask_as_well")) as obj:
        yield obj


def answers(obj: purebpf.Object, name: str = "ask") -> int:
    return obj.programs[name].test_run(FRAME).retval


@replaces
def test_a_function_is_replaced_while_the_link_lives(original):
    ask = original.programs["ask"]
    with purebpf.load(SPEC.only("refuse"), targets={"refuse": ask}) as obj:
        assert answers(original) == PASS
        with obj.programs["refuse"].attach() as link:
            assert "in the place of decide()" in link.what
            assert answers(original) == DROP
            assert link.info.type == bpf_link_type.BPF_LINK_TYPE_TRACING
            assert isinstance(link.info.details, TracingLink)
            if link.info.details.target_object_id:  # Linux 5.13
                assert link.info.details.target_object_id == ask.info.id
        assert answers(original) == PASS
        with pytest.raises(purebpf.AttachError, match="pass the target again"):
            obj.programs["refuse"].attach()
        with obj.programs["refuse"].attach(ask):
            assert answers(original) == DROP


@replaces
def test_an_object_attaches_its_replacements_itself(original):
    with purebpf.load(SPEC.only("refuse"), targets={"refuse": original.programs["ask"]}) as obj:
        obj.attach()
        assert answers(original) == DROP
    assert answers(original) == PASS


@replaces
def test_the_same_function_of_another_program(original):
    ask, as_well = original.programs["ask"], original.programs["ask_as_well"]
    with purebpf.load(SPEC.only("refuse"), targets={"refuse": ask}) as obj:
        with obj.programs["refuse"].attach(as_well, function="decide"):
            assert (answers(original), answers(original, "ask_as_well")) == (PASS, DROP)
            with pytest.raises(purebpf.NotSupportedError, match="function 'decides'"):
                obj.programs["refuse"].attach(as_well, function="decides")
        with pytest.raises(TypeError, match="target required with function="):
            obj.programs["refuse"].attach(function="decide")


@replaces
def test_a_replacement_must_be_of_the_same_kind(original):
    ask = original.programs["ask"]
    with pytest.raises(purebpf.VerifierError):
        purebpf.load(SPEC.only("refuse_otherwise"), targets={"refuse_otherwise": ask})


def test_what_is_asked_for_must_be_there(original):
    ask = original.programs["ask"]
    with pytest.raises(purebpf.NotSupportedError, match=r"targets=\{'refuse': program\}"):
        purebpf.load(SPEC.only("refuse"))
    with pytest.raises(
        purebpf.NotSupportedError, match=r"not have a function 'no_such.*known: .*decide"
    ):
        purebpf.load(SPEC.only("replaces_nothing"), targets={"replaces_nothing": ask})
    with pytest.raises(KeyError, match="unknown program 'mistyped'"):
        purebpf.load(SPEC.only("refuse"), targets={"mistyped": ask})


@pytest.mark.needs("trampolines")
def test_a_function_is_watched(original):
    ask = original.programs["ask"]
    with purebpf.load(SPEC.only("watch"), targets={"watch": ask}) as obj:
        with obj.programs["watch"].attach():
            ask.test_run(FRAME, repeat=17)
            assert obj.globals["entered"] == 17
        ask.test_run(FRAME)
        assert obj.globals["entered"] == 17
