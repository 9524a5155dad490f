"""What a tracing program is made for, when vmlinux does not have it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import purebpf
from purebpf.btf.types.kinds import Kind
from purebpf.loader.programs.attach_target import AttachTarget, attach_target
from purebpf.loader.types import kernel_btf
from tests.support.builders.btf_builder import BtfBuilder

SPEC = purebpf.read_object(Path(__file__).parents[3] / "data/load_module_target.bpf.o")


class TwoModules:
    """Two modules that both have every function."""

    def find(self, _name: str, _kind: Kind) -> list[Any]:
        return [SimpleNamespace(module=each, type_id=9) for each in ("left", "right")]

    def descriptor(self, name: str) -> int:
        return {"left": 30, "right": 31}[name]


@pytest.fixture(autouse=True)
def _kernel_without_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_btf, "kernel_btf", lambda: BtfBuilder().btf())


def target_of(function: str) -> AttachTarget:
    program = SPEC.programs["by_name"]._replace(
        section=f"fentry/{function}", attach_target=function
    )
    types: Any = SimpleNamespace(find=lambda *_: (), modules=TwoModules())
    return attach_target(program, types)


def test_modules_with_one_name_are_listed():
    with pytest.raises(purebpf.NotSupportedError) as caught:
        target_of("poll")
    assert (
        "modules left, right each have a function 'poll'; name the module: fentry/left:poll"
        in str(caught.value)
    )


def test_a_module_may_be_named():
    assert target_of("right:poll") == AttachTarget(9, 31)
