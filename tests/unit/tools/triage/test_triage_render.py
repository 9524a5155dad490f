"""Findings as a person sees them, to the letter, and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from purebpf.findings.facts import Facts, Process
from purebpf.findings.finding import Finding, Loss, Source
from purebpf.measure.targets import NoSuchTargetError
from purebpf.tools.triage.options import TriageOptions, parse
from purebpf.tools.triage.render import SCHEMA, document, lines
from purebpf.tools.triage.target import processes_called

ROOT = Path(__file__).resolve().parents[4]

FACTS = Facts(10.0, 2, counters={"user": 3.0, "system": 1.0})
CONVOY = Finding(
    *("lock-convoy", "python3", (185,), 9.18),
    "12 threads wait for the lock that reserve (stock.py:22) takes",
    ("its holder waits for an answer of 127.0.0.1:3333 in ask (stock.py:16) (95 % of that time)",),
    ("lock", "--userspace", "-p", "185"),
    own=Source("reserve", "/srv/stock.py", 22),
    unit="stock.service",
    lost_by=(Loss("nginx", 99, 9.1),),
)
BATCH = Finding(
    "cpu", "batch", (7,), 0.9, "uses 0.90 CPUs", (), ("profile", "-p", "7"), is_busy=True
)


def test_a_finding_in_eighty_columns() -> None:
    assert (
        "".join(lines(FACTS, [CONVOY, BATCH]))
        == """\
1 finding in 10 s, by cost: seconds a second that somebody loses

  9.18 s/s  stock.service: python3 (185): 12 threads wait for the lock that
            reserve (stock.py:22) takes; its holder waits for an answer of
            127.0.0.1:3333 in ask (stock.py:16) (95 % of that time)
            lost by nginx (99) 9.10 s/s
            -> purebpf lock --userspace -p 185

      busy  batch (7): uses 0.90 CPUs; nobody is seen to wait for it
            -> purebpf profile -p 7
"""
    )


@pytest.mark.parametrize("length", [50, 66], ids=["it fits", "it is cut"])
def test_a_long_path_in_the_last_line_stays(length: int) -> None:
    path = "/srv/" + "x" * (length - 5)
    full = f"files: {path}, {path}"
    text = "write fails with ENOSPC (no space left on the device) 348.8 times a second, each"
    finding = BATCH._replace(text=text, evidence=(full,), is_busy=False)
    third = "".join(lines(FACTS, [finding])).splitlines()[4]
    assert third.strip() == (f"{path} ..." if length < 64 else f"{path[:64]} ...")


def test_findings_about_other_processes_are_counted() -> None:
    assert "".join(lines(FACTS, [], 2)) == (
        "Nothing found about these processes in 10 s: 0.4 of 2 CPUs busy.\n"
        "\n2 more findings about other processes: run it without a target\n"
    )
    assert "more finding" not in "".join(lines(FACTS, [CONVOY], 0))
    assert json.loads(document(FACTS, [CONVOY], 2))["others"] == 2


def test_health_is_one_line() -> None:
    (line,) = lines(FACTS, [])
    assert line == (
        "Nothing found in 10 s: 0.4 of 2 CPUs busy, no thread waits in the\nmiddle of work.\n"
    )


def test_what_is_missing_is_said_once() -> None:
    text = "".join(lines(FACTS._replace(missing=("page faults: no tracepoint",)), []))
    assert text.endswith("\nnot measured: page faults: no tracepoint\n")


def test_control_characters_of_names_do_not_reach_the_terminal() -> None:
    hostile = CONVOY._replace(name="\x1b[2Jevil\n", text="\x9b31m" + "w" * 400)
    text = "".join(lines(FACTS, [hostile]))
    assert "\x1b" not in text
    assert "\x9b" not in text


def test_the_document_has_a_schema() -> None:
    tree = json.loads(document(FACTS, [CONVOY, BATCH]))
    assert (tree["schema"], tree["cpus"], tree["busy_cpus"]) == (1, 2, 0.4)
    (finding,) = tree["findings"]
    assert finding["who"] == {"name": "python3", "pids": [185], "unit": "stock.service"}
    assert finding["own"] == {"function": "reserve", "file": "/srv/stock.py", "line": 22}
    assert finding["lost_by"] == [{"name": "nginx", "pid": 99, "cost": 9.1}]
    assert [one["who"]["name"] for one in tree["busy"]] == ["batch"]


def validator() -> jsonschema.Draft202012Validator:
    schema = json.loads((ROOT / "docs" / "schemas" / f"triage-{SCHEMA}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_documents_meet_the_json_schema() -> None:
    check = validator()
    for findings in ([], [CONVOY, BATCH], [CONVOY._replace(own=None, pids=(), lost_by=())]):
        check.validate(json.loads(document(FACTS._replace(missing=("no faults",)), findings)))


def test_the_json_schema_names_each_field() -> None:
    def names(tree: object, schema: dict[str, Any]) -> None:
        schema = schema["oneOf"][-1] if "oneOf" in schema else schema
        schema = defined.get(schema.get("$ref", ""), schema)
        if isinstance(tree, dict):
            assert set(tree) == set(schema["properties"]) == set(schema["required"])
            for name, value in tree.items():
                names(value, schema["properties"][name])
        elif isinstance(tree, list):
            for value in tree:
                names(value, schema["items"])

    whole = validator().schema
    defined = {f"#/$defs/{name}": one for name, one in whole["$defs"].items()}
    names(json.loads(document(FACTS, [CONVOY, BATCH])), whole)


@pytest.mark.parametrize(
    ("field", "value"),
    [("schema", 2), ("findings", [{"kind": "cpu"}]), ("busy_cpus", "0.4"), ("cpus", 0)],
)
def test_other_documents_do_not_meet_it(field: str, value: object) -> None:
    tree = {**json.loads(document(FACTS, [CONVOY])), field: value}
    assert not validator().is_valid(tree)


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ([], TriageOptions()),
        (["3"], TriageOptions(duration_s=3.0)),
        (["--json", "--save", "f.json"], TriageOptions(format="json", save="f.json")),
        (["--container", "web"], TriageOptions(container_name="web")),
        (["-p", "7", "--tree"], TriageOptions(pids=(7,), tree=True)),
    ],
)
def test_options(words: list[str], options: TriageOptions) -> None:
    assert parse(words) == options


@pytest.mark.parametrize("target", [("-p", "7"), ("--comm", "web"), ("-G", "/a"), ("--uid", "0")])
@pytest.mark.parametrize("past", [("--load", "f.json"), ("--since", "10m"), ("--from", "/var")])
def test_processes_of_the_past_have_no_numbers(
    target: tuple[str, ...], past: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        parse([*past, *target])
    assert end.value.code == 2
    assert "by --container NAME only" in capsys.readouterr().err
    assert parse([*past, "--container", "web"]).container_name == "web"


def test_a_container_of_the_past_is_found_by_its_names() -> None:
    digits = "0123456789ab" + 52 * "c"
    processes = (
        Process(7, 1, "web", cgroup=f"0::/system.slice/docker-{digits}.scope"),
        Process(8, 1, "db", cgroup="0::/system.slice/db.service", unit="db.service"),
        Process(-1, 0, "shop", unit="shop.service"),
    )
    for name in ("docker:0123456789ab", "012345", digits):
        assert processes_called(processes, name) == {7}
    assert processes_called(processes, "db") == {8}
    assert processes_called(processes, "shop.service") == {-1}
    with pytest.raises(NoSuchTargetError, match="'cache' was measured; there were: db"):
        processes_called(processes, "cache")
