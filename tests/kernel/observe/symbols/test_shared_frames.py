"""Frames without addresses: processes of one program share them."""

import ctypes
import os
import random
from pathlib import Path

import pytest

from purebpf import Address, Frame, Symbolizer, Unknown
from tests.support.nightly import by_day


def _libc_function() -> int:
    address = ctypes.cast(ctypes.CDLL(None).strlen, ctypes.c_void_p).value
    assert address
    return address


def test_processes_share_frames_without_addresses() -> None:
    address, parent = _libc_function(), os.getpid()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
    try:
        (full,) = Symbolizer().user(parent, [address])
        names = Symbolizer()
        names.with_addresses = False
        (first,), (second,) = names.user(parent, [address]), names.user(child, [address])
    finally:
        os.close(writer)
        os.waitpid(child, 0)
        os.close(reader)
    assert full.address == address
    assert first is second
    assert first == full._replace(address=Address(0))


def test_places_of_a_function_share_a_frame_without_addresses() -> None:
    address = _libc_function()
    names = Symbolizer()
    names.with_addresses = False
    first, inside, behind = names.user(os.getpid(), [address, address + 1, address - 1])
    (caller,) = names.user_stack(os.getpid(), [0, address + 4])[1:]
    assert first is inside
    assert first is caller
    assert behind != first


def test_places_of_a_kernel_function_share_a_frame_without_addresses() -> None:
    functions = [
        int(line.split()[0], 16)
        for line in Path("/proc/kallsyms").read_text().splitlines()
        if "\t" not in line and line.split()[1] in "tT"
    ]
    places = [at + step for at in functions[:: len(functions) // 500] for step in (0, 1, 5)]
    full, short = Symbolizer(), Symbolizer()
    short.with_addresses = False
    for _ in range(2):
        pairs = list(zip(full.kernel(places), short.kernel(places), strict=True))
        assert {exact[0] == shared[0] for exact, shared in pairs} == {True}
        assert len({id(shared) for _, shared in pairs}) < len({exact for exact, _ in pairs})
    assert {shared.address for _, shared in pairs if isinstance(shared, Frame)} == {0}


_PLACES = 1500 if os.environ.get("PUREBPF_NIGHTLY") else 150


@pytest.mark.parametrize("back", by_day([0, 1], [1]))
def test_every_place_has_the_function_that_it_has_with_addresses(back: int) -> None:
    """Of files with symbols and without, in any order."""
    pid, parts = os.getpid(), []
    for line in Path("/proc/self/maps").read_text().splitlines():
        fields = line.split()
        if "x" in fields[1] and len(fields) == 6 and fields[5][0] in "/[" and "vsys" not in line:
            start, end = (int(number, 16) for number in fields[0].split("-"))
            parts.append(range(start, end))
    chance = random.Random(back)
    places = [chance.choice(part) for part in parts for _ in range(_PLACES)]
    places += [at + step for at in places[::3] for step in (1, 9)]
    chance.shuffle(places)
    full, short = Symbolizer(), Symbolizer()
    short.with_addresses = False

    def answers(names: Symbolizer) -> list[Frame | Unknown]:
        return names.user_stack(pid, [0, *places])[1:] if back else names.user(pid, places)

    pairs = list(zip(answers(full), answers(short), strict=True))
    for exact, shared in pairs:
        assert type(exact) is type(shared)
        if isinstance(exact, Frame):
            assert exact[0] == shared[0], hex(exact.address)
            assert exact.module == shared.module
        else:
            assert exact == shared
    assert sum(isinstance(exact, Frame) for exact, _ in pairs) > len(pairs) // 2
    assert len({id(shared) for _, shared in pairs if isinstance(shared, Frame)}) < len(pairs) * 0.8


def test_what_is_asked_again_is_not_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("purebpf.observe.symbols.symbolizer._KEEP_ANSWERS_AT_REST", 2)
    address, pid = _libc_function(), os.getpid()
    places, asked = [address, address + 1, address + 2], []
    names = Symbolizer()
    names.remember(pid)
    resolve = names._resolve
    monkeypatch.setattr(names, "_resolve", lambda *of: asked.append(of[1]) or resolve(*of))
    names.user(pid, places)  # more than are kept
    assert asked == places
    for _ in range(2):
        names.forget_but({pid})
        names.user(pid, places[:1])
    assert asked == places
    names.user(pid, places[1:2])
    names.forget_but({pid})
    names.user(pid, places)
    assert asked == places
    monkeypatch.setattr("purebpf.observe.symbols.symbolizer._KEEP_ANSWERS_AT_REST", 0)
    for _ in range(2):
        names.forget_but({pid})
        names.user(pid, places[:1])
    names.user(pid, places)
    assert asked == places + places[1:]
