"""Uprobes at functions of C++, by the names that people read."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import purebpf
from purebpf.errors import AttachError
from purebpf.loader.attach._common.probe_place import find_places
from tests.kernel.symbol_programs import compile_program

DATA = Path(__file__).parents[3] / "data"
POOL = """
#include <unistd.h>
namespace db {
struct Pool {
  __attribute__((noipa)) int get(int number) { return number + 1; }
  __attribute__((noipa)) int get(const char *name) { return name[0] + 1; }
  __attribute__((noipa)) int put(int number) { return number + 2; }
  __attribute__((noipa)) int operator+(int number) { return number + 3; }
};
}
int main(void) {
  db::Pool pool;
  for (char c; read(0, &c, 1) == 1; write(1, &c, 1))
    (void)(c == 'i' ? pool.get(c) : c == 's' ? pool.get(&c) : c == '+' ? pool + c : pool.put(c));
}
"""
INPUT = b"i" * 3 + b"s" * 5 + b"p" * 7 + b"+" * 11

pytestmark = pytest.mark.needs("g++")


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Calls a function of `db::Pool` for each byte that it copies from its input to its output."""
    path = tmp_path_factory.mktemp("pool") / "pool"
    return compile_program(path, "-w", source=POOL, compiler="g++")


@contextmanager
def loaded(pool: Path, name: str) -> Iterator[tuple[purebpf.Object, subprocess.Popen[bytes]]]:
    with subprocess.Popen([pool], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        spec = purebpf.read_object(DATA / "attach_probes.bpf.o").set(own_tgid=child.pid)
        with purebpf.load(spec.only(name)) as obj:
            yield obj, child


@pytest.mark.needs("bpf", "vmlinux_btf")
@pytest.mark.parametrize(
    ("function", "calls"),
    [
        ("db::Pool::get(int)", 3),
        ("db::Pool::get(char const*)", 5),
        ("db::Pool::put", 7),
        ("db::Pool::pu?", 7),
        ("db::Pool::operator+", 11),
    ],
)
def test_a_function_has_its_readable_name(pool: Path, function: str, calls: int) -> None:
    with loaded(pool, "on_uprobe") as (obj, child):
        with obj.programs["on_uprobe"].attach(f"{pool}:{function}"):
            assert child.communicate(INPUT, timeout=60)[0] == INPUT
        assert obj.globals["seen"].uprobe == calls


@pytest.mark.needs("bpf", "vmlinux_btf")
def test_an_overloaded_function_needs_its_parameters(pool: Path) -> None:
    with loaded(pool, "on_uprobe") as (obj, child):
        with pytest.raises(ValueError, match=r"2 functions, .* named with its parameters"):
            obj.programs["on_uprobe"].attach(f"{pool}:db::Pool::get")
        child.communicate(timeout=60)


@pytest.mark.needs("bpf", "vmlinux_btf", "uprobe_multi")
@pytest.mark.parametrize(
    ("functions", "calls"), [("db::Pool::get", 8), ("db::Pool::?*t", 15), ("db::*", 26)]
)
def test_a_pattern_matches_readable_names(pool: Path, functions: str, calls: int) -> None:
    with loaded(pool, "on_uprobes") as (obj, child):
        with obj.programs["on_uprobes"].attach(f"{pool}:{functions}"):
            assert child.communicate(INPUT, timeout=60)[0] == INPUT
        assert obj.globals["seen"].uprobes == calls


def test_a_symbol_comes_before_readable_names(pool: Path) -> None:
    (symbol,) = find_places(f"{pool}:_ZN2db4Pool3getEi", "it").offsets
    assert find_places(f"{pool}:db::Pool::get(int)+4", "it").offsets == [symbol + 4]
    with pytest.raises(AttachError, match=r"does not have a function 'db::Pool::gat'"):
        find_places(f"{pool}:db::Pool::gat", "it")


@pytest.mark.needs("objcopy")
def test_a_pattern_with_brackets_matches_symbols_as_well(pool: Path, tmp_path: Path) -> None:
    path = tmp_path / "go"
    rename = "--redefine-sym=_ZN2db4Pool3putEi=main.(*Pool).Put"
    subprocess.run(["objcopy", rename, pool, path], check=True)
    (whole,) = find_places(f"{path}:main.(*Pool).Put", "it").offsets
    assert find_places(f"{path}:main.(*Pool).Pu?", "it").offsets == [whole]
