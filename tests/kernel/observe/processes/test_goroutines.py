"""The goroutines of a live program, as Go itself has them."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from purebpf.observe.runtimes.golang.goroutines_now import (
    find_goroutines,
    inlined_functions,
    read_goroutines,
)
from purebpf.observe.symbols.symbolizer import Symbolizer
from tests.support.nightly import by_day
from tests.support.programs import goroutines

WAITING = {
    "main.takeLock": goroutines.LOCKING,
    "main.sendItem": goroutines.SENDING,
    "main.awaitItem": goroutines.RECEIVING,
    "main.passItem": goroutines.PASSING,
}


@pytest.mark.needs("go")
@pytest.mark.parametrize(
    "flags",
    by_day(
        [(), ("-buildmode=pie",), ("-ldflags=-s -w",), ("-buildmode=pie", "-ldflags=-s -w")],
        [(), ("-ldflags=-s -w",)],
    ),
    ids=["executable", "pie", "stripped", "stripped pie"],
)
def test_goroutines_that_wait_are_counted_by_function(
    flags: tuple[str, ...], tmp_path: Path
) -> None:
    with goroutines.waiting(tmp_path, *flags) as pid:
        listed = find_goroutines(pid)
        assert listed is not None
        found, weight = read_goroutines(pid, listed, 1000)
        names = Symbolizer()
        stacks = [names.user_stack(pid, one.addresses) for one in found]
    own = Counter(
        frame.name for stack in stacks for frame in stack if frame.name.startswith("main.")
    )
    assert own == WAITING
    assert weight == 1.0
    assert all(stack[-1].name.startswith(("runtime.goexit", "runtime.main")) for stack in stacks)


@pytest.mark.needs("go")
@pytest.mark.parametrize(
    "flags", by_day([(), ("-buildmode=pie",)], [()]), ids=["executable", "pie"]
)
def test_inlined_functions_are_those_that_the_compiler_inlined(
    flags: tuple[str, ...], tmp_path: Path
) -> None:
    with goroutines.waiting(tmp_path, *flags) as pid:
        listed = find_goroutines(pid)
        assert listed is not None
        found, _ = read_goroutines(pid, listed, 1000)
        addresses = {address for one in found for address in one.addresses}
        inlined = inlined_functions(pid, addresses)
        names = Symbolizer()
        put = [address for address in inlined if inlined[address] == ("main.putItem",)]
        outside = {frame.name for frame in names.user(pid, (address - 1 for address in put))}
    own = {name for one in inlined.values() for name in one if name.startswith("main.")}
    assert own == {"main.putItem"}
    assert outside == {"main.passItem"}
    assert inlined_functions(os.getpid(), addresses) == {}


@pytest.mark.needs("go")
def test_a_stripped_program_does_not_tell_its_inlined_functions(tmp_path: Path) -> None:
    with goroutines.waiting(tmp_path, "-ldflags=-s -w") as pid:
        listed = find_goroutines(pid)
        assert listed is not None
        found, _ = read_goroutines(pid, listed, 1000)
        assert inlined_functions(pid, found[0].addresses) == {}


def test_other_programs_have_no_goroutines() -> None:
    assert find_goroutines(os.getpid()) is None
