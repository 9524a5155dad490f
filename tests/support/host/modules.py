"""Kernel modules for the guests: from the unpacked package of the kernel that runs."""

from __future__ import annotations

import ctypes
import errno
import os
import re
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePath

from tests.vm.kernels import CACHE, unpack

_INIT_MODULE = 175  # x86_64, as all guests are


@cache
def folder() -> Path | None:
    """Where the modules of the running kernel are, or None."""
    release = os.uname().release
    places = (f"*/lib/modules/{release}", f"*/usr/lib/modules/{release}")
    return next((found for place in places for found in CACHE.glob(place)), None)


def load(name: str) -> None:
    """Load a module and what it depends on; one that is there already stays.

    Raises:
        OSError: the kernel refuses it.
        KeyError: there is no such module.
    """
    place = folder()
    if place is None:
        raise KeyError(name)
    if name in (place / "modules.builtin").read_text().replace("-", "_"):
        return
    listed = (place / "modules.order").read_text().split()  # a walk would take a guest a minute
    paths = {PurePath(each).stem.replace("-", "_"): place / each for each in listed}
    path = paths[name]
    image = unpack(next(path.parent.glob(f"{path.name}*")).read_bytes())
    depends = re.search(rb"\0depends=([^\0]*)\0", image)
    for needed in depends[1].decode().split(",") if depends else ():
        if needed:
            load(needed.replace("-", "_"))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_INIT_MODULE, image, ctypes.c_ulong(len(image)), b""):
        number = ctypes.get_errno()
        if number != errno.EEXIST:
            raise OSError(number, f"init_module({name}): {os.strerror(number)}")


def offer(*names: str) -> None:
    """Load those modules that the kernel's package has; what is missing then shows in use."""
    for name in names:
        with suppress(KeyError):
            load(name)


def offer_configuration() -> None:
    """Put the kernel's configuration where a machine has it that was installed with its package."""
    place, name = folder(), f"config-{os.uname().release}"
    if place is None or Path("/boot", name).exists():
        return
    for source in (place / "config", place.parents[2] / "boot" / name):
        if source.exists():
            Path("/boot").mkdir(exist_ok=True)
            Path("/boot", name).write_bytes(source.read_bytes())


def load_conntrack() -> None:
    """Load nf_conntrack, which has functions for programs to call (Linux 5.18)."""
    with suppress(KeyError):  # gone from newer kernels
        load("crc32c_generic")  # which libcrc32c asks for by the name of its algorithm
    load("nf_conntrack")
