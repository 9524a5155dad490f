"""The unit and the DaemonSet, by the programs that read them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.conftest import ROOT

NAMES = {"systemd": "purebpf-agent.service", "daemonset": "daemonset.yaml"}
CAPABILITIES = {"BPF", "PERFMON", "SYS_PTRACE", "SYSLOG", "DAC_READ_SEARCH"}


def printed(option: str) -> str:
    words = [sys.executable, "-m", "purebpf", "agent", f"--{option}"]
    return subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def test_the_example_is_a_configuration_that_writes_windows(tmp_path: Path) -> None:
    from purebpf.services.agent.config import parse_config

    config = parse_config(printed("example"))
    assert [sink.type for sink in config.sinks] == ["dir"]
    everything = re.sub(r"^# (\[|\w+ = )", r"\1", printed("example"), flags=re.MULTILINE)
    whole = parse_config(everything)
    assert whole.cpu == config.cpu, "the comments show the defaults"
    assert whole.agent == config.agent
    assert [sink.type for sink in whole.sinks] == ["dir", "otlp"]
    assert [rule.name for rule in whole.services] == [r"shop-\1"]
    path = tmp_path / "agent.toml"
    path.write_text(printed("example"))
    words = [sys.executable, "-m", "purebpf", "agent", "--config", str(path), "--check"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT)
    assert "windows of 60 s" in done.stdout
    words[-2] = str(tmp_path / "none.toml")
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, "agent --example" in " ".join(done.stderr.split())) == (1, True)


def test_the_unit_starts_this_python() -> None:
    text = printed("systemd")
    assert f"ExecStart={sys.executable} -m purebpf agent --config" in text
    assert "@PUREBPF@" not in text


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    path = tmp_path / NAMES["systemd"]
    path.write_text(printed("systemd"))
    words = ["systemd-analyze", "verify", "--man=no", str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    words = ["systemd-analyze", "security", "--offline=true", "--threshold=35", str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-300:]


def test_kubernetes_knows_every_key_of_the_daemonset() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    validate = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is not installed"
    )
    parts = [*yaml.safe_load_all(printed("daemonset"))]
    assert [part["kind"] for part in parts] == ["Namespace", "ConfigMap", "DaemonSet"]
    for part in parts:
        validate.validate(part, "1.30", strict=True)
    pod = parts[2]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    context = container["securityContext"]
    assert {*context["capabilities"]["add"]} == CAPABILITIES
    context["privilegedd"] = True
    with pytest.raises(validate.ValidationError):
        validate.validate(parts[2], "1.30", strict=True)


def test_the_configuration_in_the_daemonset_is_one() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    from purebpf.services.agent.config import parse_config

    config_map = [*yaml.safe_load_all(printed("daemonset"))][1]
    config = parse_config(config_map["data"]["agent.toml"])
    assert [sink.type for sink in config.sinks] == ["otlp"]


def test_unit_and_daemonset_have_the_same_capabilities() -> None:
    unit = printed("systemd")
    (line,) = [line for line in unit.splitlines() if line.startswith("AmbientCapabilities=")]
    words = line.partition("=")[2].split()
    assert {word.removeprefix("CAP_") for word in words} == CAPABILITIES
