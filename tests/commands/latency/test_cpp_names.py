"""Functions of C++ by the names that people read, with stars that are pointers."""

from __future__ import annotations

from pathlib import Path

import pytest

from purebpf.errors import AttachError
from purebpf.tools.latency.functions import User, Wanted, find_functions
from tests.kernel.symbol_programs import compile_program

SOURCE = """
namespace db {
__attribute__((noipa)) int find(char *) { return 1; }
__attribute__((noipa)) int find(char *, int) { return 2; }
}
extern "C" int copied(int) __asm__("_Z4copyPi.actor");
extern "C" __attribute__((noipa)) int copied(int number) { return number; }
int main() { return db::find(nullptr) + db::find(nullptr, 1) + copied(1); }
"""

pytestmark = pytest.mark.needs("g++")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("names") / "names"
    return compile_program(path, "-w", source=SOURCE, compiler="g++")


def names(program: Path, function: str) -> list[str]:
    found = find_functions([f"{program}:{function}"], Wanted(returns=False))
    return sorted(one.name for one in found if isinstance(one, User))


def test_a_star_is_a_pointer_if_there_is_such_a_function(program: Path) -> None:
    assert names(program, "db::find(char*)") == ["db::find(char*)"]
    assert len(names(program, "db::find(char*")) == 2
    assert len(names(program, "db::f*")) == 2


def test_names_of_clones_are_no_patterns(program: Path) -> None:
    for name in ("copy(int*) [clone .actor]", "copy(int*", "copy*"):
        assert len(names(program, name)) == 1


def test_an_error_has_the_name_as_it_was_written(program: Path) -> None:
    with pytest.raises(AttachError, match=r"does not have a function 'db::Pool::get\(int\)'"):
        names(program, "db::Pool::get(int)")
