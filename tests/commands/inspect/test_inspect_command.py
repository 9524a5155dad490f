"""`purebpf inspect`: what it prints, and that docs/inspect.md says the same."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import purebpf
from purebpf import asm
from purebpf.symbols.elf_image import ElfImage
from tests.commands.conftest import ROOT
from tests.support.host.privilege import reachable

PAGE = (ROOT / "docs/inspect.md").read_text()
CORE = "tests/data/core/core_loads.bpf.o"
TARGET = "tests/data/core/core_loads.target.o"


def inspect(*arguments: str, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = [*prefix, sys.executable, "-W", "error", "-m", "purebpf", "inspect", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.any_kernel
def test_the_page_shows_what_the_command_prints():
    (shown,) = re.findall(r"^\$ purebpf inspect tests.*\n((?:.*\n)*?)```", PAGE, re.MULTILINE)
    result = inspect(CORE, "--btf", TARGET)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == shown


@pytest.mark.any_kernel
def test_the_python_example_of_the_page_runs():
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    command = [sys.executable, "-W", "error", "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert result.returncode == 0, result.stderr


@pytest.mark.any_kernel
def test_json_has_every_part_and_the_documented_names():
    result = inspect(CORE, "--btf", TARGET, "--json")
    report = json.loads(result.stdout)
    for part in re.findall(r"`(\w+)`", PAGE[PAGE.index("is one object with") :].split("\n\n")[0]):
        assert report[part] is not None
    assert report["source"] == CORE
    assert report["targets"] == [TARGET]
    assert {line["poisoned"] for line in report["core"]} == {True, False}


@pytest.mark.any_kernel
def test_sections_of_any_elf_file_are_shown():
    result = inspect("--sections", sys.executable)
    assert (result.returncode, result.stderr) == (0, "")
    assert "  e_machine  EM_" in result.stdout
    sections = json.loads(inspect("--sections", "--json", CORE).stdout)["sections"]
    assert {"raw_tracepoint/load_widened", ".BTF.ext"} <= {each["name"] for each in sections}


@pytest.mark.any_kernel
def test_what_is_not_an_elf_file_is_one_paragraph():
    result = inspect("--sections", "docs/inspect.md")
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert "pyelftools cannot read it" in " ".join(result.stderr.split())


@pytest.mark.needs("perf", "perf_event")
def test_a_recording_of_perf_is_described_as_perf_does(tmp_path):
    path = str(tmp_path / "perf.data")
    record = ["perf", "record", "-q", "-o", path, "-e", "cpu-clock", "-F", "99", "-g", "true"]
    subprocess.run(record, check=True, capture_output=True)
    show = ["perf", "report", "--header-only", "-i", path]
    theirs = subprocess.run(show, check=True, capture_output=True, text=True).stdout
    report = json.loads(inspect("--json", path).stdout)
    features = {each["name"]: each["value"] for each in report["features"]}
    data = next(each for each in report["sections"] if each["name"] == "data")
    assert f"# data offset    : {data['offset']}\n" in theirs
    assert f"# data size      : {data['size']}\n" in theirs
    assert f"# hostname : {features['HOSTNAME']}\n" in theirs
    assert f"# total memory : {features['TOTAL_MEM']['kib']} kB\n" in theirs
    assert f"# cmdline : {' '.join(features['CMDLINE'])}" in theirs
    pmus = ", ".join(f"{each['name']} = {each['type']}" for each in features["PMU_MAPPINGS"])
    assert f"# pmu mappings: {pmus}\n" in theirs
    (event,) = report["events"]
    assert event["fields"]["sample_freq"] == 99
    ids = ", ".join(map(str, event["ids"]))
    assert f"id = {{ {ids} }}" in theirs
    assert f"sample_type = {'|'.join(event['fields']['sample_type'])}" in theirs
    assert not [each for each in report["features"] if each["problem"]]


@pytest.mark.needs("kernel_variable_types")
def test_this_kernel_is_asked_without_a_file():
    result = inspect("tests/data/elf_externs.bpf.o", "--json")
    externs = {line["name"]: line for line in json.loads(result.stdout)["externs"]}
    assert externs["bpf_prog_active"]["here"] == "in /sys/kernel/btf/vmlinux"
    assert externs["absent"]["here"] == "missing"
    assert externs["bpf_rcu_read_lock"]["kind"] == "function"
    assert externs["CONFIG_HZ"]["weak"] is True


@pytest.mark.any_kernel
@pytest.mark.needs("vmlinux_btf", "setpriv", "mount_namespace")
def test_anybody_may_use_it():
    result = inspect(
        "tests/data/core/core_task.bpf.o",
        prefix=(
            *reachable(),
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--bounding-set=-all",
        ),
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert "struct task_struct.pid: field_byte_offset" in result.stdout


@pytest.mark.any_kernel
def test_a_file_that_is_not_there_or_no_object(tmp_path: Path):
    missing = inspect(str(tmp_path / "nothing.bpf.o"))
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "nothing.bpf.o) failed with ENOENT" in " ".join(missing.stderr.split())
    text = tmp_path / "text.bpf.o"
    text.write_text("not an object")
    assert "not an ELF file" in inspect(str(text)).stderr
    assert "ENOENT" in inspect(CORE, "--btf", str(tmp_path / "no.btf")).stderr
    assert inspect().returncode == 2


@pytest.mark.any_kernel
def test_a_named_pipe_is_not_waited_for(tmp_path: Path):
    pipe = str(tmp_path / "tool.bpf.o")
    os.mkfifo(pipe)
    for arguments in ([pipe], ["--sections", pipe], [CORE, "--btf", pipe]):
        result = inspect(*arguments)
        assert (result.returncode, "ESPIPE" in result.stderr) == (1, True)


@pytest.mark.any_kernel
def test_bare_btf_is_types_too(tmp_path: Path):
    elf = inspect(CORE, "--btf", TARGET).stdout
    bare = tmp_path / "kernel.btf"
    image = ElfImage.of_bytes((ROOT / TARGET).read_bytes())
    bare.write_bytes(image.contents(image.section(".BTF")))
    assert inspect(CORE, "--btf", str(bare)).stdout == elf.replace(TARGET, str(bare))


@pytest.mark.any_kernel
def test_the_result_goes_where_it_should(tmp_path: Path):
    target = tmp_path / "report.json"
    assert inspect(CORE, "--btf", TARGET, "--json", "-o", str(target)).stdout == ""
    assert json.loads(target.read_text())["license"] == "GPL"


@pytest.mark.any_kernel
def test_the_types_that_an_object_needs_are_written(tmp_path: Path):
    few = str(tmp_path / "few.btf")
    done = inspect("--btf-for", TARGET, CORE, "-o", few)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(rf"wrote {few}, \d+ bytes\n", done.stderr)
    shown = [json.loads(inspect(CORE, "--btf", name, "--json").stdout) for name in (TARGET, few)]
    whole, part = (
        [(line["what"], line["kind"], line["value"], line["poisoned"]) for line in one["core"]]
        for one in shown
    )
    assert part == whole
    done = inspect("--btf-for", TARGET, CORE)
    assert done.returncode == 2
    assert "it goes with -o FILE" in " ".join(done.stderr.split())


@pytest.mark.any_kernel
def test_code_is_shown_below_its_lines_of_c():
    shown = inspect("--disassemble", "tests/data/load_counter.bpf.o", "count_calls")
    assert (shown.returncode, shown.stderr) == (0, "")
    head, *lines = shown.stdout.splitlines()
    spec = purebpf.read_object(ROOT / "tests/data/load_counter.bpf.o")
    count = len(spec.functions["count_calls"].code) // 8
    assert head == f"count_calls: {spec.programs['count_calls'].section}, {count} instructions"
    assert "\n".join(lines) == asm.disassemble(spec, "count_calls")


@pytest.mark.any_kernel
def test_code_of_all_programs_and_of_what_they_call_is_shown():
    path = "tests/data/elf_functions.bpf.o"
    shown = inspect("--disassemble", path).stdout
    spec = purebpf.read_object(ROOT / path)
    programs = {program.function for program in spec.programs.values()}
    called = spec.functions.keys() - programs
    assert called
    heads = [line.split(":")[0] for line in shown.splitlines() if line.endswith(" instructions")]
    assert sorted(heads) == sorted([*spec.programs, *called])


@pytest.mark.any_kernel
def test_an_unknown_program_to_disassemble_names_similar_ones():
    shown = inspect("--disassemble", "tests/data/load_counter.bpf.o", "count_cals")
    assert (shown.returncode, shown.stdout) == (1, "")
    assert "unknown program or function 'count_cals'; similar: count_calls" in " ".join(
        shown.stderr.split()
    )
    assert inspect("tests/data/load_counter.bpf.o", "count_calls").returncode == 2
    assert inspect("--disassemble", "--json", "tests/data/load_counter.bpf.o").returncode == 2
