"""Programs that run beside what is measured, until a stack ends; PostgreSQL among them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

__all__ = ["start", "start_postgres", "start_silently"]


def start_silently(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """A program without input and output, with what it starts in a session of its own."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        **options,
    )


def start(stack: ExitStack, command: Sequence[str], **options: Any) -> None:
    """The same, which ends with the stack."""
    stack.callback(_stop, start_silently(command, **options))


def _stop(child: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, 9)
    child.wait()


def start_postgres(stack: ExitStack, folder: Path, client: str) -> bool:
    """A server of the user postgres, and a client that keeps it busy; False: it is not installed.

    Args:
        stack: ends both.
        folder: for its data.
        client: a command line of sh; {place} are its programs, {socket} is its socket's folder.
    """
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not programs:
        return False
    place, data = programs[-1], folder / "data"
    data.mkdir()
    shutil.chown(data, "postgres")
    who: dict[str, Any] = {"user": "postgres", "group": "postgres", "cwd": data, "extra_groups": []}
    subprocess.run(
        [place / "initdb", "-A", "trust", "-D", data], check=True, capture_output=True, **who
    )
    settings = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={data}"]
    start(stack, [str(place / "postgres"), "-D", str(data), *settings], **who)
    start(stack, ["sh", "-c", client.format(place=place, socket=data)], **who)
    return True
