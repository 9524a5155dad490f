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
