"""A map without memory: which limit of which cgroup, and which option makes the map smaller."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from purebpf.abi.bpf import bpf_map_type
from purebpf.cli.command import run
from purebpf.cli.library_advice import OPTIONS
from purebpf.errors import KernelError
from purebpf.loader.host import cgroups
from purebpf.loader.maps import map_errors
from purebpf.spec import MapSpec
from purebpf.syscall import proc

HUGE = MapSpec("counts", bpf_map_type.BPF_MAP_TYPE_HASH, 16, 8, 4_000_000)


@pytest.mark.parametrize(
    ("kind", "line", "name"),
    [("cgroup2", "0::/a/b", "memory.max"), ("cgroup", "4:memory:/a/b", "memory.limit_in_bytes")],
)
def test_the_tightest_limit_of_all_above_counts(
    kind: str, line: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount = tmp_path / "memory"
    (mount / "a" / "b").mkdir(parents=True)
    (mount / "a" / "b" / name).write_text(f"{(1 << 63) - 4096}\n")
    (mount / "a" / name).write_text("104857600\n")
    (mount / name).write_text("max\n")
    monkeypatch.setattr(proc, "cgroup", lambda _: f"9:cpu:/x\n{line}\n")
    monkeypatch.setattr(proc, "mounts", lambda: [(str(mount), kind)])
    assert cgroups.memory_limit() == (str(mount / "a" / name), 104857600)


@pytest.mark.parametrize(
    ("command", "option"),
    [("purebpf sampleip", "--map-entries"), ("purebpf.profile", "--hash-storage-size")],
)
def test_the_error_names_limit_map_and_option(
    command: str,
    option: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(cgroups, "memory_limit", lambda: ("/cg/memory.max", 104857600))
    refused = KernelError("bpf(BPF_MAP_CREATE)", errno.ENOMEM)

    def fail() -> int:
        raise map_errors.creation(refused, HUGE)

    assert run(command, fail) == 1
    told = " ".join(capsys.readouterr().err.split())
    assert "map 'counts'" in told
    assert "104857600 in all (/cg/memory.max)" in told
    assert f"make it smaller with {option}" in told
    assert "spec.resize" not in told


@pytest.mark.parametrize(
    ("command", "name", "advice"),
    [
        ("lock", "rows", "make it smaller with --map-entries, or raise that limit"),
        ("latency", "nodes", "make it smaller with --map-entries, or raise that limit"),
        ("lock", "stacks", "raise that limit"),
        ("trace", "events", "raise that limit"),
    ],
)
def test_only_options_of_the_command_are_named(
    command: str, name: str, advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = KernelError("bpf(BPF_MAP_CREATE)", errno.ENOMEM)

    def fail() -> int:
        raise map_errors.creation(refused, HUGE._replace(name=name))

    assert run(f"purebpf {command}", fail) == 1
    told = " ".join(capsys.readouterr().err.split())
    assert told.endswith(f". {advice}")


@pytest.mark.parametrize("command", sorted(OPTIONS))
def test_the_named_options_exist(command: str) -> None:
    arguments = [sys.executable, "-P", "-m", "purebpf", command, "--help"]
    shown = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout
    assert all(f"{option} N" in shown for option in OPTIONS[command].values())
