"""The phps of this machine: the one on the path, and those of roots that PUREBPF_PHPS names."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import time
from pathlib import Path

import pytest

__all__ = ["command", "default", "every", "fpm", "params", "request"]


def every() -> list[Path]:
    """Each php once."""
    return sorted({*_asked(), *default()})


def default() -> list[Path]:
    """The `php` on the path; none if there is none."""
    php = shutil.which("php")
    return [Path(php)] if php else []


def fpm() -> Path | None:
    """A php-fpm; None if there is none."""
    return next(iter(sorted(Path("/usr/sbin").glob("php-fpm*"))), None)


def params() -> list[object]:
    """`every` for `pytest.mark.parametrize`."""
    return [pytest.param(each, id=str(each)) for each in every()]


def command(php: Path) -> list[str]:
    """The command that runs a php; one that PUREBPF_PHPS names runs with its own libraries."""
    if php in default():
        return [str(php)]
    root = php.parents[2]
    loader = root / "lib64/ld-linux-x86-64.so.2"
    libraries = ":".join(str(root / each) for each in ("usr/lib/x86_64-linux-gnu", "usr/lib"))
    opcache = next(iter(sorted(root.glob("usr/lib/php/*/opcache.so"))), None)
    loaded = ["-d", f"zend_extension={opcache}"] if opcache else []
    return [str(loader), "--library-path", libraries, str(php), *loaded]


def request(place: Path, script: Path) -> None:
    """Send a request to php-fpm, and leave it without waiting for the answer."""
    names = {
        "SCRIPT_FILENAME": str(script),
        "SCRIPT_NAME": f"/{script.name}",
        "REQUEST_METHOD": "GET",
        "SERVER_PROTOCOL": "HTTP/1.1",
    }
    body = b"".join(
        bytes((len(name), len(value))) + name.encode() + value.encode()
        for name, value in names.items()
    )
    message = _record(1, struct.pack(">HB5x", 1, 0)) + _record(4, body) + _record(4, b"")
    end = time.monotonic() + 10
    while not place.exists():
        assert time.monotonic() < end, f"{place} did not appear"
        time.sleep(0.05)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(place))
    connection.sendall(message + _record(5, b""))
    time.sleep(0.5)
    connection.close()


def _asked() -> list[Path]:
    """The programs that PUREBPF_PHPS names, with colons between them."""
    return [Path(each) for each in os.environ.get("PUREBPF_PHPS", "").split(":") if each]


def _record(kind: int, body: bytes) -> bytes:
    """A record of FastCGI."""
    return struct.pack(">BBHHBx", 1, kind, 1, len(body), 0) + body
