"""CPU limits of cgroups, by the files of both versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from purebpf.measure import cpu_limits
from purebpf.measure.cpu_limits import CpuLimit, CpuLimitWatch, read_cpu_limit


def version_1(folder: Path, periods: int, throttled: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cpu.cfs_quota_us").write_text("15000\n")
    (folder / "cpu.cfs_period_us").write_text("100000\n")
    (folder / "cpu.stat").write_text(
        f"nr_periods {periods}\nnr_throttled {throttled}\nthrottled_time 4100000000\n"
    )


def test_a_limit_of_either_version(tmp_path: Path) -> None:
    version_1(tmp_path / "one", 50, 46)
    assert read_cpu_limit(str(tmp_path / "one")) == CpuLimit(0.15, 50, 46, 4.1)
    two = tmp_path / "two"
    two.mkdir()
    (two / "cpu.stat").write_text("nr_periods 9\nnr_throttled 3\nthrottled_usec 250000\n")
    (two / "cpu.max").write_text("50000 100000\n")
    assert read_cpu_limit(str(two)) == CpuLimit(0.5, 9, 3, 0.25)
    (two / "cpu.max").write_text("max 100000\n")
    assert read_cpu_limit(str(two)).quota_cpus == 0.0
    assert read_cpu_limit(str(tmp_path / "none")) == CpuLimit()


def test_a_limit_that_stops_a_process_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version_1(tmp_path / "pod" / "shop", 100, 10)
    text = f"3:cpu:{tmp_path}/pod/shop\n4:memory:/other\n0::/\n"
    monkeypatch.setattr(
        cpu_limits, "read_text", lambda path: text if path == "/proc/7/cgroup" else _read(path)
    )
    real = cpu_limits.read_cpu_limit
    monkeypatch.setattr(
        cpu_limits, "read_cpu_limit", lambda folder: real(folder.removeprefix("/sys/fs/cgroup/cpu"))
    )
    watch = CpuLimitWatch([7])
    assert watch.sentences() == []
    version_1(tmp_path / "pod" / "shop", 150, 13)
    assert watch.sentences() == []  # seldom
    version_1(tmp_path / "pod" / "shop", 150, 56)
    assert watch.sentences() == ["CPU limit of shop (0.15 CPUs): throttled in 92 % of its periods"]
    assert CpuLimitWatch([8]).sentences() == []


def _read(path: str) -> str:
    file = Path(path)
    return file.read_text() if file.exists() else ""
