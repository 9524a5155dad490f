"""What the shells themselves make of the scripts of `purebpf completion`."""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from purebpf.commands import COMMANDS
from purebpf.tools.completion.model import describe_commands
from purebpf.tools.completion.options import SHELLS

pytestmark = pytest.mark.slow


PATIENCE_S = 30
ZSH_S = 5  # for it to complete a word
COMMAND_LINES = {
    "purebpf prof": "profile",
    "purebpf profile --form": "--format",
    "purebpf profile --format spee": "speedscope",
    "purebpf setup unp": "unpin",
    "purebpf completion fi": "fish",
    "purebpf summary --mode thr": "thread",
    "purebpf inspect to": "tool.bpf.o",
    "purebpf convert to": "tool.bpf.o",
    "purebpf profile -o to": "tool.bpf.o",
    "purebpf profile -F 99 --strict --foll": "",
    "purebpf profile -- sha512su": "sha512sum",
}
"""What is typed before the key, and the word that it becomes; "" if nothing fits."""


def bash(script: Path, typed: str) -> str:
    """The only candidate."""
    words = typed.split(" ")
    code = f"""
source {script}
compopt() {{ COMPREPLY=($(compgen -f -- "$current")); }}
COMP_WORDS=({" ".join(words)}) COMP_CWORD={len(words) - 1}
_purebpf
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    command = ["bash", "--norc", "-c", code]
    ended = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=script.parent, timeout=PATIENCE_S
    )
    assert ended.stderr == ""
    (only,) = set(ended.stdout.split()) or {""}  # /bin and /usr/bin may be the same folder
    return only


def fish(script: Path, typed: str) -> str:
    """The only candidate."""
    command = ["fish", "--no-config", "-c", f"source {script}; complete -C '{typed}'"]
    ended = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=script.parent, timeout=PATIENCE_S
    )
    assert ended.stderr == ""
    return ended.stdout.partition("\t")[0].strip()


def zsh(script: Path, typed: str) -> str:
    """What the last word becomes on a terminal when the key is pressed."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(script.parent)
        os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "TERM": "dumb", "PS1": "ready> "})
    try:
        _until(terminal, "ready> ")
        setup = f"autoload -U compinit; compinit -D -u; source {script}; echo LOA''DED\n"
        os.write(terminal, setup.encode())
        _until(terminal, "LOADED\r\n")
        # Control-X prints the line as it is
        show = 'show() { zle -I; print -r -- "<$BUFFER>" }; zle -N show; '
        os.write(terminal, show.encode() + b"bindkey '^X' show; echo BOU''ND\n")
        _until(terminal, "BOUND\r\n")
        os.write(terminal, typed.encode() + b"\t")
        shown, deadline = typed, time.monotonic() + ZSH_S
        while shown.strip() == typed and time.monotonic() < deadline:
            time.sleep(0.2)
            os.write(terminal, b"\x18")
            shown = _until(terminal, ">\r\n").rpartition("<")[2].partition(">")[0]
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)
    done = shown.split(" ")[len(typed.split(" ")) - 1]
    return "" if shown.strip() == typed else done


def _until(terminal: int, text: str) -> str:
    found = ""
    while text not in found:
        answers, _, _ = select.select([terminal], [], [], PATIENCE_S)
        assert answers, f"zsh does not say {text!r}: {found!r}"
        found += os.read(terminal, 65536).decode(errors="replace")
    return found


COMPLETED: dict[str, Callable[[Path, str], str]] = {"bash": bash, "zsh": zsh, "fish": fish}


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a script for each shell, and a file to complete."""
    folder = tmp_path_factory.mktemp("completion")
    (folder / "tool.bpf.o").touch()
    for shell in SHELLS:
        command = [sys.executable, "-m", "purebpf", "completion", shell]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        (folder / shell).write_text(text)
    return folder


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("typed", COMMAND_LINES)
def test_a_shell_completes(shell: str, typed: str, scripts: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert COMPLETED[shell](scripts / shell, typed) == COMMAND_LINES[typed]


def test_every_option_of_every_parser_is_in_every_script(scripts: Path) -> None:
    commands = describe_commands()
    assert [command.name for command in commands] == list(COMMANDS)
    flags = {flag for command in commands for option in command.options for flag in option.flags}
    assert {"--waker", "--errno-summary", "--max-size"} & flags
    for shell in SHELLS:
        text = (scripts / shell).read_text()
        for flag in flags:
            kind = "l" if flag.startswith("--") else "s"
            spelt = f"-{kind} {flag.lstrip('-')} " if shell == "fish" else flag
            assert spelt in text, (shell, flag)


def test_values_are_read_off_the_parsers() -> None:
    profile = next(command for command in describe_commands() if command.name == "profile")
    values = {option.flags[-1]: option.value for option in profile.options}
    assert values["--strict"] is None
    assert values["--pid"].kind == "pid"
    assert values["--output"].kind == "file"
    assert "speedscope" in values["--format"].choices
    assert values["--serve"].optional
    assert profile.runs_command
