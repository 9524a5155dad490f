"""Frames without addresses: processes of one program share them."""

import ctypes
import os

import pytest

from purebpf import Address, Symbolizer


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


def test_what_is_asked_again_is_not_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("purebpf.kernel.symbolize.symbolizer._KEEP_ANSWERS_AT_REST", 2)
    address, pid = _libc_function(), os.getpid()
    places, asked = [address, address + 1, address + 2], []
    names = Symbolizer()
    names.remember(pid)
    resolve = names._resolve
    monkeypatch.setattr(names, "_resolve", lambda *of: asked.append(of[2]) or resolve(*of))
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
    monkeypatch.setattr("purebpf.kernel.symbolize.symbolizer._KEEP_ANSWERS_AT_REST", 0)
    for _ in range(2):
        names.forget_but({pid})
        names.user(pid, places[:1])
    names.user(pid, places)
    assert asked == places + places[1:]
