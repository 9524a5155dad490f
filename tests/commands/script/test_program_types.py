"""Parameters by name, structs and source lines of programs, by their DWARF."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.needs("bpf", "vmlinux_btf", "gcc"),
    pytest.mark.any_kernel,  # guests before 5.12 lack atomic exchange
]

COMMAND = (sys.executable, "-P", "-m", "purebpf", "script")
SOURCE = r"""
#include <stdbool.h>
typedef unsigned short port_t;
union either { int number; char text[8]; };
struct inner { signed char small; unsigned int first : 3, second : 7; union either either; };
struct order {
    const char *name; int items[3]; struct inner inner; struct order *next; bool paid;
    struct { long hidden; };
};
struct pair { double x, y; long z; };
#define KEPT __attribute__((noinline, noclone))
KEPT int take(struct order *order, double price, int count, port_t port, signed char sign, bool ok,
          const char *text, long seventh, long on_stack)
{
    return order->items[0] + (int)price + count + port + sign + ok + text[0] + (int)seventh +
           (int)on_stack; /* line 17 */
}
KEPT struct pair make(int number)
{
    return (struct pair){number, number, number};
}
KEPT int after(struct pair pair, int number)
{
    return (int)pair.x + number;
}
int main(void)
{
    struct order other = {"other", {9, 8, 7}};
    struct order order = {"tea", {-4, 5, 6}, {-2, 5, 77, {.text = "either"}}, &other, true};
    order.hidden = 1L << 40;
    __asm__ volatile("" : : "r"(&order), "r"(&other) : "memory");
    return take(&order, 1.5, -3, 65535, -7, true, "text", 1L << 33, 4) + (int)make(1).z +
           after((struct pair){1, 2, 3}, 4) == 0;
}
"""


@pytest.fixture(scope="module", params=["-no-pie", "-pie -gdwarf-4", "-O2", "separate"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, as compilers make it; "separate": its DWARF is in another file."""
    folder = tmp_path_factory.mktemp("types")
    (folder / "orders.c").write_text(SOURCE)
    is_separate = request.param == "separate"
    options = [] if is_separate else request.param.split()
    command = ["gcc", "-g", *options, "-o", "orders", "orders.c"]
    subprocess.run(command, check=True, cwd=folder)
    if is_separate:
        for words in (
            "--only-keep-debug orders orders.debug",
            "--strip-debug --add-gnu-debuglink=orders.debug orders",
        ):
            subprocess.run(["objcopy", *words.split()], check=True, cwd=folder)
    return folder / "orders"


def script(program: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Run a script while the program runs."""
    return subprocess.run(
        [*COMMAND, "-q", "-c", str(program), "-e", text], capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip


def test_parameters_have_their_names_sizes_and_signs(program: Path) -> None:
    names = "args.count, args.port, args.sign, args.ok, str(args.text)"
    text = f'printf("%d %d %d %d %s\\n", {names});'
    done = script(program, f"uprobe:{program}:take {{ {text} }}")
    assert done.stdout.splitlines()[:1] == ["-3 65535 -7 1 text"], done.stderr


def test_members_of_structs_are_read(program: Path) -> None:
    text = (
        "$o = args.order; print($o.items); print(str($o.name)); print(str($o.next.name)); "
        "print($o.inner.small); print(($o.inner.first, $o.inner.second)); "
        "print($o.inner.either.text); print($o.paid); print($o.hidden); print($o.next.items[1]);"
    )
    done = script(program, f"uprobe:{program}:take {{ {text} }}")
    assert done.stdout.splitlines()[:9] == [
        "[-4,5,6]", "tea", "other", "-2", "(5, 77)", "either", "true", str(1 << 40), "8",
    ], done.stderr  # fmt: skip


def test_a_cast_finds_the_struct_of_the_program_and_the_one_of_the_script_first(
    program: Path,
) -> None:
    cast = "print(((struct order *)arg0).items[1]); print(sizeof(struct inner));"
    done = script(program, f"uprobe:{program}:take {{ {cast} }}")
    assert done.stdout.splitlines()[:2] == ["5", "12"], done.stderr
    own = "struct order { uint64 name; int first; }"
    done = script(program, f"{own} uprobe:{program}:take {{ print(((struct order *)arg0).first) }}")
    assert done.stdout.splitlines()[:1] == ["-4"], done.stderr


def test_parameters_that_are_not_in_their_registers_are_refused(program: Path) -> None:
    for function, name, why in (
        ("take", "seventh", "does not have a field 'seventh'"),
        ("take", "on_stack", "does not have a field 'on_stack'"),
        ("take", "price", "does not have a field 'price'"),
        ("after", "number", "does not have a field 'number'"),
        ("make", "number", "it returns a struct"),
        ("take+4", "count", "it is not where the function begins"),
    ):
        text = f"uprobe:{program}:{function} {{ print(args.{name}); }}"
        done = subprocess.run(
            [*COMMAND, "--unsafe", "-e", text], capture_output=True, text=True, check=False
        )
        assert (done.returncode, why in done.stderr) == (1, True), done.stderr


def test_a_probe_is_at_a_source_line(program: Path) -> None:
    line = next(
        number for number, row in enumerate(SOURCE.splitlines(), 1) if "order->items[0]" in row
    )
    text = f"uprobe:{program}@orders.c:{line} {{ print((probe, arg2)); exit(); }}"
    done = script(program, text.replace("arg2", "1"))
    assert f"(uprobe:{program}@orders.c:{line}, 1)" in done.stdout, done.stderr
    done = script(program, f"uprobe:{program}@orders.c:1000 {{ }}")
    assert done.returncode == 1
    assert "no DWARF of the program has code for this line" in done.stderr


def test_parameters_are_listed(program: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "-lv", f"uprobe:{program}:take"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[1:] == [
        "    struct order* order", "    double price", "    int count", "    port_t port",
        "    signed char sign", "    _Bool ok", "    const char* text", "    long int seventh",
        "    long int on_stack",
    ]  # fmt: skip


def test_without_dwarf_the_message_says_so(tmp_path: Path) -> None:
    (tmp_path / "orders.c").write_text(SOURCE)
    subprocess.run(["gcc", "-o", "orders", "orders.c"], check=True, cwd=tmp_path)
    done = script(tmp_path / "orders", f"uprobe:{tmp_path}/orders:take {{ print(args.count); }}")
    assert done.returncode == 1
    assert "no DWARF describes the function" in done.stderr
