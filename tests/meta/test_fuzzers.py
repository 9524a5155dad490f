"""Each reader of files that others made has a fuzzer, and the fuzzers can be started."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "purebpf"

READERS = {
    "btf": [
        *("btf/codec/codecs", "btf/codec/columns", "btf/codec/values", "btf/dump/declarations"),
        *("btf/dump/layout", "btf/dump/text", "btf/types/join", "btf/types/parse"),
        *("btf/types/struct_members", "loader/types/btf_file"),
    ],
    "calls": ["syscall/proc"],
    "dns": ["tools/tcp/dns"],
    "elf": ["symbols/elf_image", "symbols/mini_debug"],
    "folded": ["results/formats/folded", "results/shape/diff"],
    "inspect": ["btf/core/access", "btf/core/value", "relocate/core"],
    "json": ["results/formats/json", "observe/saved/profile_loader"],
    "object": [
        *("elf/btf_ext", "elf/btf_repair", "elf/container", "elf/reader", "relocate/link"),
    ],
    "perf_data": [
        *("observe/saved/perf_data_loader", "observe/saved/program_records"),
        *("results/build/loaded_code", "results/build/perf_data_aggregate"),
        *("results/formats/perf_data", "wire/perf_count", "wire/perf_data_features"),
        *("wire/perf_data_pipe", "wire/perf_data_reader", "wire/perf_format"),
        "wire/perf_samples",
    ],
    "perf_script": ["results/formats/perf_script"],
    "pprof": ["results/formats/pprof_reader"],
    "probes": ["observe/runtimes/golang/goroutines_now", "symbols/go_stack", "symbols/usdt"],
    "python": ["observe/runtimes/cpython/code_names"],
    "recording": ["tools/inspect/perf_data"],
    "sections": ["tools/inspect/sections"],
    "side_band": ["wire/perf_ring", "wire/ring_buffer"],
    "speedscope": ["results/formats/speedscope_reader"],
    "windows": ["unwind/window_file"],
}
"""The modules that raise FormatError, by the target of tests/fuzz that sends them changed files."""

BY_TESTS = {
    "results/formats/otlp_profile": "tests/unit/services/fleet/test_hostile_messages.py",
    "results/formats/otlp_reader": "tests/commands/fleet/test_hostile_bodies.py",
    "services/fleet/importing": "tests/unit/services/fleet/test_hostile_messages.py",
    "build/headers": "tests/unit/build/test_hostile_headers.py",
    "observe/runtimes/hotspot/libjvm": "tests/commands/dump/test_dump_java.py",
    "symbols/go_inlined": "tests/unit/symbols/test_go_inlined.py",
}
"""Readers whose hostile inputs are tests."""

OWN = {
    "btf/types/index_file": "the cache of this user",
    "build/hatch": "the project of this user",
    "build/options": "the options of a build",
    "errors": "defines it",
    "findings/codec": "results of triage",
    "loader/attach/__init__": "names of sections of a spec",
    "loader/attach/iterator": "names of sections of a spec",
    "loader/rings/perf_buffer": "records of loaded programs",
    "loader/rings/record_types": "types of loaded programs",
    "loader/rings/ring_numpy": "records of loaded programs",
    "objects/packed": "files of the package",
    "observe/symbols/debuginfod": "answers of servers, bounded by test_debuginfod; read as elf",
    "observe/unwind/copy_buffer": "records of purebpf's programs",
    "observe/unwind/stack_finisher": "records of purebpf's programs",
    "observe/unwind/stack_walker": "records of purebpf's programs",
    "symbols/table_file": "the cache of this user; test_table_file cuts it everywhere",
    "tools/triage/__main__": "results of triage",
    "tools/triage/stored_windows": "windows that the agent of this host stored",
}
"""Modules that read data of the same user or of purebpf, with the reason."""


def modules() -> set[str]:
    found = (path for path in PACKAGE.rglob("*.py") if "FormatError(" in path.read_text())
    return {str(path.relative_to(PACKAGE).with_suffix("")) for path in found}


def targets(fuzzer: str) -> set[str]:
    """Return the keys of the table TARGETS."""
    tree = ast.parse((ROOT / "tests/fuzz" / fuzzer).read_text())
    tables = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and isinstance(node.value, ast.Dict)
        and "TARGETS" in ast.unparse(node).partition("=")[0]
    ]
    return {key.value for table in tables for key in table.keys if isinstance(key, ast.Constant)}  # type: ignore[misc]


def test_each_reader_has_a_fuzzer() -> None:
    listed = [name for names in READERS.values() for name in names]
    assert len(listed) == len(set(listed))
    assert sorted({*listed, *BY_TESTS, *OWN}) == sorted(modules())


@pytest.mark.parametrize("name", sorted(BY_TESTS))
def test_hostile_inputs_of_the_others_exist(name: str) -> None:
    assert (ROOT / BY_TESTS[name]).is_file()


def test_each_target_exists() -> None:
    assert set(READERS) <= targets("fuzz.py") | targets("mutate.py")


@pytest.mark.parametrize("fuzzer", ["fuzz.py", "mutate.py"])
def test_a_fuzzer_can_be_started(fuzzer: str) -> None:
    """It imports all that it uses: nothing else starts it in a quick run of the tests."""
    if fuzzer == "fuzz.py":
        pytest.importorskip("atheris", reason="fuzz.py needs atheris")
    words = [sys.executable, str(ROOT / "tests/fuzz" / fuzzer), "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "perf_data" in done.stdout
