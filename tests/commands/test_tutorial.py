"""docs/tutorial.md, from an empty folder: its files are written, its commands executed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/tutorial.md").read_text()
BLOCK = re.compile(
    r"^(?:<!-- file: (?P<file>\S+) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
TIMEOUT_S = 300

pytestmark = [
    pytest.mark.slow,
    pytest.mark.any_kernel,
    pytest.mark.needs("clang", "bpf", "perf_event"),
]


class Section(NamedTuple):
    """A heading, the files it has the reader save, and its commands."""

    title: str
    files: dict[str, str]
    commands: str


def sections() -> list[Section]:
    found = []
    for part in PAGE.split("\n## ")[1:]:
        blocks = list(BLOCK.finditer(part))
        files = {block["file"]: block["text"] for block in blocks if block["file"]}
        commands = "".join(block["text"] for block in blocks if block["language"] == "sh")
        found.append(Section(part.splitlines()[0], files, commands))
    return found


def test_every_block_is_a_file_or_a_command() -> None:
    for block in BLOCK.finditer(PAGE):
        assert bool(block["file"]) != (block["language"] == "sh"), block["text"]
    assert len(list(BLOCK.finditer(PAGE))) == PAGE.count("```") // 2


@pytest.mark.nightly  # half a minute
def test_a_reader_gets_what_the_page_says(tmp_path: Path) -> None:
    output = dict.fromkeys("1234567", "")
    folder = tmp_path
    for section in sections():
        for name, text in section.files.items():
            (folder / name).write_text(text)
        commands = section.commands
        if shutil.which("sudo") is None:
            assert os.getuid() == 0
            commands = commands.replace("sudo ", "")
        ended = subprocess.run(
            ["bash", "-euc", commands],
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
            cwd=folder,
            env={**os.environ, "PUREBPF": str(ROOT)},
        )
        assert ended.returncode == 0, (section.title, ended.stdout, ended.stderr)
        output[section.title[0]] = ended.stdout
        folder = tmp_path / "hello"
    assert output["1"].startswith("purebpf 0.")
    assert "CAP_BPF" in output["1"]
    assert "on_exec" in output["2"]
    lines = output["3"].splitlines()
    assert lines[0] == "attached"
    assert lines[-1] == "lost: 0"
    assert {"ls", "uname"} <= {line.split()[2] for line in lines[1:-1]}
    others = output["4"].splitlines()
    assert "65534 uname" in others
    assert all(line.startswith("65534 ") for line in others)
    assert re.match(r" +\d+ system calls of \S", output["5"])
    assert "at broken.bpf.c:19: *count += 1;" in output["6"]
    assert "map_value_or_null" in output["6"]
    assert (folder / "count_types.py").stat().st_size
