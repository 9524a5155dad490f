"""The JSON of doctor and dump meets the schemas in docs/schemas, which are those of their types."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from purebpf.tools.doctor.model import Answer, Command, Fact, Report
from purebpf.tools.doctor.render import document as doctor_document
from purebpf.tools.dump.model import DumpedFrame, DumpedTask, DumpedThread, ProcessDump
from purebpf.tools.dump.render import document as dump_document
from scripts.generate_schemas import DOCUMENTS, ROOT, schema

REPORT = Report(
    "Linux 6.18",
    (Fact("uid", "0"),),
    (),
    (Fact("CPUs online", "0-1", "two"),),
    True,
    (Answer("map types", "map type HASH", True, "the kernel accepted it"),),
    (Command("profile", ("no BPF",)),),
)
FRAMES = (DumpedFrame("kernel", "schedule", "kernel"), DumpedFrame("user", "f", "a.py", 3))
THREAD = DumpedThread(7, "worker", "sleeps", "futex()", True, False, 1 << 60, FRAMES, (), 0)
TASK = DumpedTask("Task-1", "waits", ("sleep",), "", (), FRAMES, ("cut",))
DUMP = ProcessDump(7, "python3 a.py", "3.11", False, (THREAD,), ("a note",), 0.5)


def validate(name: str, text: str) -> dict[str, Any]:
    kept = json.loads((ROOT / f"docs/schemas/{name}-1.json").read_text())
    jsonschema.Draft202012Validator.check_schema(kept)
    tree: dict[str, Any] = json.loads(text)
    jsonschema.Draft202012Validator(kept).validate(tree)
    return tree


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_schema_is_that_of_the_types(name: str) -> None:
    assert json.loads((ROOT / f"docs/schemas/{name}-1.json").read_text()) == schema(name)


def test_doctor_meets_its_schema() -> None:
    assert validate("doctor", doctor_document(REPORT))["schema"] == "purebpf.doctor/1"


@pytest.mark.parametrize("tasks", [None, (), (TASK,)])
def test_dump_meets_its_schema(tasks: tuple[DumpedTask, ...] | None) -> None:
    tree = validate("dump", dump_document(DUMP._replace(tasks=tasks)))
    assert tree["threads"][0]["interpreter"] == hex(1 << 60)
    assert ("tasks" in tree) == (tasks is not None)


def test_a_missing_member_or_another_type_is_refused() -> None:
    tree = json.loads(dump_document(DUMP))
    for wrong in ({**tree, "pid": 0.5}, {**tree, "schema": "purebpf.dump/2"}, {"pid": 7}):
        with pytest.raises(jsonschema.ValidationError):
            validate("dump", json.dumps(wrong))
