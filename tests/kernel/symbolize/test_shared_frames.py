"""Frames without addresses: processes of one program share them."""

import ctypes
import os

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
