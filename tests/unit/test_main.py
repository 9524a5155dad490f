"""`purebpf COMMAND`: what it lists, starts and refuses."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from purebpf import __version__
from purebpf.__main__ import main
from purebpf.cli.command import LOSS
from purebpf.commands import COMMANDS, GROUPS, SYMPTOMS, package_of
from purebpf.tools.completion.model import describe_commands
from tests.support.environment import installed

CONSOLE_SCRIPT = Path(sys.executable).with_name("purebpf")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "purebpf", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_every_package_with_a_main_is_listed() -> None:
    assert installed() == set(COMMANDS)


def test_help_has_one_line_for_each_command() -> None:
    ended = run("--help")
    assert (ended.returncode, ended.stderr) == (0, "")
    lines = ended.stdout.splitlines()
    assert all(len(line) <= 80 for line in lines)
    for name, summary in COMMANDS.items():
        assert sum(line.split()[:1] == [name] and summary in line for line in lines) == 1


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_can_be_typed(name: str) -> None:
    for arguments in ((name, "--help"), ("help", name)):
        ended = run(*arguments)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert ended.stdout.startswith(f"usage: purebpf {name} ")
        assert ended.stdout.partition("\n\n")[0].count("[options]") <= 1
        assert f"\n  purebpf {name} " in ended.stdout or f"\n  sudo purebpf {name} " in ended.stdout
        assert "python -m" not in ended.stdout


@pytest.mark.parametrize("name", ["profile", "record", "summary"])
def test_three_commands_are_modules_too(name: str) -> None:
    command = [sys.executable, "-m", f"purebpf.{name}", "--help"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == (
        run(name, "--help").stdout
    )
    module, package = import_module(f"purebpf.{name}"), import_module(f"purebpf.tools.{name}")
    assert {name: getattr(module, name) for name in module.__all__} == {
        name: getattr(package, name) for name in package.__all__
    }


def test_version_is_that_of_the_package() -> None:
    assert run("--version").stdout == f"purebpf {__version__}\n"


def test_a_misspelt_command_gets_a_hint() -> None:
    ended = run("proflie")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "purebpf: error: unknown command 'proflie'; did you mean 'profile'?" in ended.stderr


def test_without_a_command_it_lists_them_by_moment() -> None:
    ended = run()
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == run("--help").stdout
    assert len(GROUPS) == 5
    positions = [ended.stdout.index(f"\n{title}\n") for title in GROUPS]
    assert positions == sorted(positions)


@pytest.mark.parametrize("line", SYMPTOMS.values())
def test_each_observation_leads_to_a_command_that_parses(line: str) -> None:
    program, name, *words = line.replace("PID", "4711").split()
    assert program == "purebpf"
    import_module(f"{package_of(name)}.options").parse(words)


def test_arguments_and_exit_status_are_those_of_the_command(tmp_path: Path) -> None:
    ended = run("convert", "tests/data/stacks.folded", "-o", str(tmp_path / "out.json"))
    assert ended.returncode == 0
    assert (tmp_path / "out.json").stat().st_size
    ended = run("convert", str(tmp_path / "missing.json"))
    assert ended.returncode == 1
    assert ended.stderr.startswith("purebpf convert: ")
    ended = run("convert", "--nonsense")
    assert ended.returncode == 2
    assert "\npurebpf convert: error: " in ended.stderr


def test_main_takes_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"purebpf {__version__}\n"


def test_a_command_of_its_own_process_never_searches_for_garbage() -> None:
    """Not at the end either, when all objects of the run would be searched at once."""
    script = (
        "import gc, sys\n"
        "from purebpf.__main__ import main\n"
        "searches = []\n"
        "gc.callbacks.append(lambda phase, about: searches.append(phase))\n"
        "sys.argv = ['purebpf', 'convert', 'tests/data/stacks.folded', '-o', '/dev/null']\n"
        "before = len(sys.modules)\n"
        "assert main() == 0 and len(sys.modules) > before + 50\n"
        "made = [[] for _ in range(2000)]\n"
        "print(len(searches))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "0\n"


ENDING = """
import atexit, sys
ended = []
class Last:
    def __del__(self):
        print("taken apart")
if sys.argv.pop() == "late":
    atexit.register(print, "registered before")
from purebpf import __main__ as program
def main():
    program.last = Last()
    atexit.register(print, "registered by the command")
    print("result")
    return program.status
program.main = main
program.status = eval(sys.argv.pop())
program.start()
"""


@pytest.mark.parametrize("status", [0, 3])
def test_a_command_ends_without_taking_its_objects_apart(status: int) -> None:
    command = [sys.executable, "-c", ENDING, str(status), ""]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (status, "")
    assert ended.stdout == "result\nregistered by the command\n"


def test_what_was_registered_before_a_command_happens_at_its_end() -> None:
    command = [sys.executable, "-c", ENDING, "3", "late"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 3
    assert ended.stdout.splitlines()[:3] == [
        *("result", "registered by the command", "registered before")
    ]


def test_development_mode_shows_what_a_command_left_open() -> None:
    code = ENDING.replace("Last()", "open('/dev/null')")
    command = [sys.executable, "-X", "dev", "-c", code, "3", ""]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 3
    assert "ResourceWarning: unclosed file" in ended.stderr


def test_a_bug_in_a_command_keeps_its_traceback() -> None:
    script = ENDING.replace("program.status = eval(sys.argv.pop())", "sys.argv.pop()")
    command = [sys.executable, "-c", script, "", ""]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "AttributeError: module 'purebpf.__main__' has no attribute 'status'" in ended.stderr


def test_output_that_cannot_be_written_at_the_end_is_no_success() -> None:
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-c", ENDING, "0", ""]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=buffered
        )
    assert ended.returncode == 120
    assert "No space left on device" in ended.stderr


def test_the_console_script_is_installed() -> None:
    text = subprocess.run([CONSOLE_SCRIPT, "--help"], capture_output=True, text=True, check=True)
    assert text.stdout == run("--help").stdout


def test_help_imports_no_command_and_no_parser() -> None:
    code = (
        "import sys; from purebpf.__main__ import main; main(['--help']);"
        "print(*sys.modules, file=sys.stderr)"
    )
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    modules = set(ended.stderr.split())
    rooms = {name.split(".")[1] for name in modules if name.startswith("purebpf.")}
    assert rooms == {
        *("__main__", "_version", "cli", "closable", "commands", "errors", "lazy", "safe_path")
    }
    assert not modules & {"argparse", "importlib.resources", "ctypes", "difflib"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_parser(name: str) -> None:
    command = import_module(f"{package_of(name)}.__main__")
    assert command.build_parser().prog == f"purebpf {name}"


STRICT = [
    command.name
    for command in describe_commands()
    if any("--strict" in option.flags for option in command.options)
]


@pytest.mark.parametrize("name", STRICT)
def test_the_help_of_a_strict_command_has_the_status_of_a_loss(name: str) -> None:
    parser = import_module(f"{package_of(name)}.__main__").build_parser()
    said = " ".join(parser.format_help().split())
    statuses = said.partition("exit status: ")[2]
    assert re.search(
        rf"\b{LOSS} (something was (lost|not counted), with --strict|with .*--strict)", statuses
    )


def test_every_command_that_can_lose_something_is_strict() -> None:
    """The others read files, or have no losses of their own."""
    others = {"agent", "completion", "convert", "diff", "doctor", "dump", "inspect", "new"}
    assert set(COMMANDS) - set(STRICT) == others | {"script", "setup", "view", "vmlinux"}
