"""The layout of a V8, and constants that are not what a reader expects."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from purebpf.runtimes.v8.layout import _EXPECTED, _FIELDS, V8LayoutError, read_layout
from tests.support.programs import nodes
from tests.unit.runtimes.v8.fake_v8 import VERSIONS, golden

SCRIPT = Path(__file__).parents[4] / "scripts/generate_runtime.py"


def constants() -> dict[str, int]:
    """Those of 13.6, as far as the reader needs them."""
    layout = golden(1306)
    values = {names[-1]: getattr(layout, field) for field, names in _FIELDS.items()}
    code = {
        "class_Code__instruction_start__Address": layout.code_start,
        "class_Code__instruction_size__int": layout.code_size,
        "class_Code__flags__uint32_t": layout.code_flags,
        "class_BytecodeArray__wrapper__Tagged_BytecodeWrapper_": 16,
        "type_InstructionStream__INSTRUCTION_STREAM_TYPE": layout.type_stream,
        "LastJSFunctionType": layout.type_function_last,
        "DeoptimizationDataLiteralArrayIndex": layout.deopt_literals,
        "DeoptimizationDataOptimizationIdIndex": layout.deopt_optimisation,
        "DeoptimizationDataWrappedSharedFunctionInfoIndex": layout.deopt_shared,
        "DeoptimizationDataInliningPositionsIndex": layout.deopt_positions,
    }
    return {**values, **_EXPECTED, **code}


def test_constants_give_the_golden_layout() -> None:
    assert read_layout((13, 6), constants()) == golden(1306)


@pytest.mark.parametrize("version", [(9, 4), (10, 8), (12, 0), (13, 7), (15, 0)])
def test_versions_that_were_not_tried_are_refused(version: tuple[int, int]) -> None:
    with pytest.raises(V8LayoutError, match=rf"V8 {version[0]}\.{version[1]}: .*node 18 to 26"):
        read_layout(version, constants())


@pytest.mark.parametrize("name", sorted(_EXPECTED))
def test_another_value_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(V8LayoutError, match=name):
        read_layout((13, 6), {**constants(), name: 4})


@pytest.mark.parametrize("field", sorted(_FIELDS))
def test_a_missing_constant_is_refused_by_its_field(field: str) -> None:
    values = constants()
    for name in _FIELDS[field]:
        values.pop(name, None)
    if field == "type_function_first":
        values.pop("FirstJSFunctionType", None)
    with pytest.raises(V8LayoutError, match=field):
        read_layout((13, 6), values)


def test_an_offset_that_no_object_has_is_refused() -> None:
    with pytest.raises(V8LayoutError, match="offset"):
        read_layout((13, 6), {**constants(), "class_Script__source__Object": 1 << 20})


def test_each_version_that_is_read_has_a_golden_layout() -> None:
    assert [golden(version).version for version in VERSIONS] == list(VERSIONS)


@pytest.mark.skipif(not nodes.every(), reason="there is no node")
@pytest.mark.parametrize("node", nodes.params())
def test_a_node_describes_its_golden_layout(node: Path) -> None:
    subprocess.run([sys.executable, SCRIPT, "--check", node], check=True)


@pytest.mark.parametrize("content", [b"", b"\x7fELF", Path("/bin/true").read_bytes()])
def test_a_file_without_v8_fails(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "node").write_bytes(content)
    command = [sys.executable, SCRIPT, tmp_path / "node"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert str(tmp_path) in done.stderr
    assert "Traceback" not in done.stderr
