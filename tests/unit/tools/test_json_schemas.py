"""The schemas in docs/schemas are the generated ones, and JSON of the commands meets them."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jsonschema
import pytest

from purebpf.cli.event_lines import event_document, json_loss
from purebpf.results import Labels, Loss, Profile
from purebpf.results.formats import json as report_format
from purebpf.results.shape import diff
from purebpf.tools.doctor.model import Answer, Command, Fact, Report
from purebpf.tools.doctor.render import document as doctor_document
from purebpf.tools.dump.model import DumpedFrame, DumpedTask, DumpedThread, ProcessDump
from purebpf.tools.dump.render import document as dump_document
from scripts.generate_schemas import NAMES, ROOT, schema

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


@cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    """The validator of a schema, which is valid itself; that takes a second of the events'."""
    kept = json.loads((ROOT / f"docs/schemas/{name}-1.json").read_text())
    jsonschema.Draft202012Validator.check_schema(kept)
    return jsonschema.Draft202012Validator(kept)


def validate(name: str, text: str) -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(text)
    validator(name).validate(tree)
    return tree


@pytest.mark.parametrize("name", NAMES)
def test_the_schema_is_the_generated_one(name: str) -> None:
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


def test_every_schema_is_in_the_list_of_promises() -> None:
    promised = (ROOT / "docs/releases.md").read_text()
    for file in (ROOT / "docs/schemas").iterdir():
        assert f"(schemas/{file.name})" in promised


def test_a_profile_and_a_difference_meet_theirs() -> None:
    profile = Profile("a title")
    profile.add((), None, 7, Labels("shop", 185))
    assert validate("report", report_format.document(profile))["total"] == 7
    validate("diff", diff.document(diff.compare(profile, profile, "a -> b")))


def test_a_line_of_events_fits_one_of_their_kinds() -> None:
    (last,) = json_loss(Loss())
    validate("events", last)
    task = {"pid": 7, "tid": 7, "uid": 0, "comm": "sh", "ppid": 1, "cgroup": ""}
    used = event_document("used", 1, {**task, "cpu_ns": 5})
    validate("events", json.dumps(used))
    for wrong in ({**used, "cpu_ns": "5"}, {**used, "event": "use"}, {"event": "used"}):
        with pytest.raises(jsonschema.ValidationError):
            validate("events", json.dumps(wrong))
