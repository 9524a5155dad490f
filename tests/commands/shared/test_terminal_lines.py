"""Commands that print lists fit into the terminal that shows them; files have whole lines."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from purebpf.results import Labels, Profile
from purebpf.results.formats import json
from purebpf.results.model.width import display_width
from tests.commands.conftest import ROOT
from tests.support.builders.profiles import user

COLUMNS = 80
LONG = "a_name_that_is_longer_than_a_line_of_a_terminal_of_eighty_columns_can_ever_show_whole"

pytestmark = [pytest.mark.any_kernel]


def shown(*arguments: str) -> list[str]:
    """What a command prints on a terminal of 80 columns."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    command = [sys.executable, "-m", "purebpf", *arguments]
    with subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, cwd=ROOT):
        os.close(follower)
        raw = b""
        try:
            while block := os.read(leader, 65536):
                raw += block
        except OSError:  # EIO: the command has ended
            pass
        finally:
            os.close(leader)
    return raw.decode(errors="replace").splitlines()


def fits(lines: list[str]) -> bool:
    assert len(lines) > 3, lines
    return all(display_width(line) <= COLUMNS for line in lines)


@pytest.mark.parametrize("name", ["profile", "tcp"])
def test_inspect(name: str) -> None:
    path = f"purebpf/objects/{name}.bpf.o"
    assert fits(shown("inspect", path))
    assert fits(shown("inspect", "--sections", path))


def test_diff(tmp_path: Path) -> None:
    paths = []
    for number in (1, 2):
        profile = Profile("x")
        profile.add((user(LONG), user("main")), (), number, Labels("shop", 185))
        profile.add((user(f"{LONG}_{number}"),), (), 5, Labels("shop", 185))
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_text(json.document(profile))
    assert fits(shown("diff", *map(str, paths)))


@pytest.mark.needs("bpf", "task_pt_regs", "vmlinux_btf", "x86_64")
def test_dump() -> None:
    assert fits(shown("dump", "--native", str(os.getpid())))


@pytest.mark.needs("bpf", "perf_event")
@pytest.mark.parametrize("options", [(), ("--count",)])
def test_sampleip(options: tuple[str, ...]) -> None:
    assert fits(shown("sampleip", *options, "0.5"))
