"""Static probes and functions of programs: arguments, places, patterns, probes that are missing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.needs("bpf", "vmlinux_btf", "gcc"),
    pytest.mark.any_kernel,  # guests before 5.12 lack atomic exchange
]

COMMAND = (sys.executable, "-P", "-m", "purebpf", "script")
SOURCE = Path(__file__).parents[2] / "data" / "usdt_workload.c"
FORMS = "-2 254 -2 65534 -2 4294967294 1234605616436508552 -5000000000 -9 71 30 10"
"""The values that usdt_workload.c puts where each kind of argument is."""


@pytest.fixture(scope="module", params=["-no-pie", "-pie"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workload, where it was linked to be or anywhere."""
    path = tmp_path_factory.mktemp("static") / "workload"
    option = [request.param, "-fPIE"] if request.param == "-pie" else [request.param, "-fno-pie"]
    subprocess.run(["gcc", "-O1", *option, "-o", str(path), str(SOURCE)], check=True)
    return path


def script(program: Path, *arguments: str, lines: int = 3) -> subprocess.CompletedProcess[str]:
    """Run a script while the program passes its probes once for each line of its input."""
    return subprocess.run(
        [*COMMAND, "-c", str(program), *arguments], input="\n" * lines, capture_output=True,
        text=True, check=False, timeout=60,
    )  # fmt: skip


def test_arguments_of_every_form(program: Path) -> None:
    names = ", ".join(f"arg{number}" for number in range(12))
    text = f'usdt:{program}:purebpf:forms {{ printf("{"%ld " * 12}\\n", {names}); @++; }}'
    done = script(program, "-e", text, lines=7)
    assert [line.strip() for line in done.stdout.splitlines()].count(FORMS) == 7
    assert "@: 7\n" in done.stdout
    assert done.stderr == "Attached 1 probe\n"


def test_arguments_in_arrays_and_variables(program: Path) -> None:
    text = (
        f"usdt:{program}:indexed {{ @i[arg0, arg1, arg2] = count(); }} "
        f"usdt:{program}:symbolic {{ @s[arg1] = count(); }}"
    )
    done = script(program, "-q", "-e", text)
    assert "@i[50, 70, 12800]: 3\n" in done.stdout
    assert "@s[30]: 3\n" in done.stdout


def test_places_with_other_arguments_belong_to_the_probe_and_raise_its_counter(
    program: Path,
) -> None:
    done = script(program, "-e", f"usdt:{program}:purebpf:guarded {{ @[arg0]++; }}", lines=5)
    assert "@[0]: 5\n@[1]: 5\n@[2]: 5\n" in done.stdout
    assert "0" not in done.stdout.split("\n\n")[0].split()
    assert done.stderr == "Attached 1 probe\n"


def test_an_argument_that_cannot_be_read_is_refused_by_name(program: Path) -> None:
    done = script(program, "-q", "-e", f"usdt:{program}:vector {{ print((arg0, arg3)); }}")
    assert "(5, 6)\n" in done.stdout
    done = script(program, "-q", "-e", f"usdt:{program}:vector {{ print(arg1); }}")
    assert done.returncode == 1
    assert "ERROR: arg1 of usdt:" in done.stderr
    done = script(program, "-q", "-e", f"usdt:{program}:silent {{ print(arg0); }}")
    assert "has 0 arguments, and no arg0" in done.stderr


def test_patterns_attach_to_all_probes(program: Path) -> None:
    done = script(program, "-e", f"usdt:{program.parent}/work*::s* {{ @[probe] = count(); }}")
    assert f"@[usdt:{program}:purebpf:silent]: 3\n" in done.stdout
    assert f"@[usdt:{program}:purebpf:symbolic]: 3\n" in done.stdout
    assert done.stderr == "Attached 2 probes\n"


def test_probes_of_a_program_are_listed(program: Path) -> None:
    done = subprocess.run([*COMMAND, "-l", f"usdt:{program}:purebpf:s*"], capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.stdout == f"usdt:{program}:purebpf:silent\nusdt:{program}:purebpf:symbolic\n"


@pytest.mark.parametrize(("choice", "status"), [("error", 1), ("warn", 0), ("ignore", 0)])
def test_a_missing_probe_is_an_error_a_warning_or_nothing(
    program: Path, choice: str, status: int
) -> None:
    points = f"uprobe:{program}:main,uprobe:{program}:no_such_function"
    text = f"config = {{ missing_probes = {choice} }} {points} {{ @ = count(); }}"
    done = script(program, "-e", text)
    assert done.returncode == status
    word = {"error": "ERROR", "warn": "WARNING"}.get(choice, "-")
    message = f"{word}: No matches for uprobe {program}:no_such_function."
    assert (message in done.stderr) == (choice != "ignore")
    assert ("@: 1\n" in done.stdout) == (status == 0)


def test_a_listed_name_moves_no_cursor_and_begins_no_line(tmp_path: Path) -> None:
    plain, hostile = b"a_function_of_nobody", b"\x1b[2J\nuprobe:forged:\xe2\x80\xae"
    source = f"int {plain.decode()}(void) {{ return 1; }} int main(void) {{ return 0; }}"
    path = tmp_path / "named"
    words = ["gcc", "-x", "c", "-", "-o", str(path)]
    subprocess.run(words, input=source, check=True, text=True)
    path.write_bytes(
        path.read_bytes().replace(plain, hostile[: len(plain)].ljust(len(plain), b"x"))
    )
    words = [*COMMAND, "-l", f"uprobe:{path}:*"]
    shown = subprocess.run(words, capture_output=True, check=True, timeout=60).stdout.decode()
    lines = shown.splitlines()
    assert all(line.isprintable() for line in lines)
    assert all(line.startswith(f"uprobe:{path}:") for line in lines)
    assert any("forged" in line for line in lines)


SIZES = """
__asm__(".text\\n.globl sized, bare\\n.type sized, @function\\nsized:\\n push %rbp\\n"
        " mov %rsp, %rbp\\n pop %rbp\\n ret\\n.size sized, .-sized\\n"
        ".type bare, @function\\nbare:\\n ret\\n");
struct texts { char full[8]; char odd[5]; char ended[5]; };
__attribute__((noinline)) void take(struct texts *texts) {
    __asm__ volatile("" : : "r"(texts) : "memory");
}
int main(void) {
    struct texts texts = {
        {'f', 'u', 'l', 'l', '5', '6', '7', '8'}, {'h', 'e', 'l', 'l', 'o'}, "ab"};
    take(&texts);
    return 0;
}
"""


@pytest.fixture(scope="module")
def sizes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with a function of four instructions, and one whose size is not known."""
    folder = tmp_path_factory.mktemp("sizes")
    (folder / "sizes.c").write_text(SIZES)
    subprocess.run(["gcc", "-O1", "-o", folder / "sizes", folder / "sizes.c"], check=True)
    return folder / "sizes"


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="instructions of x86-64")
@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("sized+0", ""),
        ("sized+1", ""),
        ("sized+2", "in the middle of an instruction"),
        ("sized+3", "in the middle of an instruction"),
        ("sized+4", ""),
        ("sized+6", "outside the function bounds ('sized' size is 6)"),
        ("bare", "boundary for bare (symbol has size 0)"),
    ],
)
def test_places_that_may_harm_a_program_are_refused(sizes: Path, place: str, problem: str) -> None:
    done = script(sizes, "--dry-run", "-e", f"uprobe:{sizes}:{place} {{ }}")
    assert problem in done.stderr
    assert done.returncode == bool(problem)


def test_force_is_only_for_places_in_the_function(sizes: Path) -> None:
    done = script(sizes, "--unsafe", "--dry-run", "-e", f"uprobe:{sizes}:bare {{ }}")
    assert done.returncode == 0
    done = script(sizes, "--unsafe", "--dry-run", "-e", f"uprobe:{sizes}:sized+6 {{ }}")
    assert done.returncode == 1


def test_arrays_of_characters_need_no_nul(sizes: Path) -> None:
    text = (
        "struct texts { char full[8]; char odd[5]; char ended[5]; } "
        f"uprobe:{sizes}:take {{ $t = (struct texts *)arg0; $odd = $t.odd; @[$t.full] = 1; "
        'printf("%s %s %s %s|", $t.full, $odd, $t.ended, str($t.odd)); '
        'printf("%d %d %d|", strlen($t.full), strlen($odd), strlen($t.ended)); '
        'printf("%d %d", $t.full == "full5678", $t.full == "full567"); }'
    )
    done = script(sizes, "-q", "-e", text)
    assert done.stdout == "full5678 hello ab hello|8 5 2|1 0\n\n\n@[full5678]: 1\n".replace(
        "\n", "", 1
    )


def test_blocks_of_one_place_run_in_their_order(program: Path) -> None:
    texts = [
        f'{kind}:{program}:{name} {{ printf("1"); }} {kind}:{program}:{name} {{ printf("2"); }}'
        for kind, name in (("usdt", "purebpf:forms"), ("uprobe", "main"))
    ]
    for text in texts:
        done = script(program, "-q", "-e", text)
        assert re.sub(r"0?\n", "", done.stdout) in ("12", "121212")  # the program prints zeros


@pytest.mark.needs("x86_64")
def test_an_address_is_that_of_the_linked_program_and_the_start_of_an_instruction(
    program: Path,
) -> None:
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    main = next(int(line.split()[0], 16) for line in symbols.splitlines() if " main" in line)
    text = "uprobe:{}:{:#x} {{ @[probe] = count(); }}"
    done = script(program, "-q", "-e", text.format(program, main))
    assert f"@[uprobe:{program}:{main}]: 1\n" in done.stdout
    inside = next(
        done
        for distance in range(1, 16)
        if (done := script(program, "-q", "-e", text.format(program, main + distance))).returncode
    )
    assert "in the middle of an instruction" in inside.stderr
    nowhere = script(program, "-q", "-e", text.format(program, 10))
    assert nowhere.returncode == 1
    assert nowhere.stderr.startswith(f"ERROR: Could not resolve address: {program}:0xa\n")
    returns = script(program, "-q", "-e", "uretprobe" + text.format(program, main + 1)[6:])
    assert "uretprobes cannot be attached at function offset" in returns.stderr
