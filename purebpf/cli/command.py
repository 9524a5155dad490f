"""The end of a command: an exit status, and after an error one paragraph."""

from __future__ import annotations

import atexit
import errno
import gc
import os
import sys
from collections.abc import Callable
from itertools import groupby
from typing import TextIO

from purebpf.errors import KernelError, PurebpfError

__all__ = ["FAILED", "LOSS", "note", "run", "say", "wrap_paragraph"]

FAILED = 1
"""Something that this machine or the user must change; standard error says what."""

LOSS = 3
"""`--strict`, and the result is incomplete. (2 is a usage error, argparse's.)"""

INTERRUPTED = 130
_WIDTH = 80
_BLANKS = str.maketrans(dict.fromkeys("\n\v\f\r", " "))
_MEMORY = "the system, `ulimit -v` or a cgroup gave no more. A shorter run needs less"


def run(name: str, body: Callable[[], int]) -> int:
    """Run a command and return its exit status.

    An error of purebpf is printed as a paragraph; its `exit_status`, if it has one, is the
    command's. Running out of descriptors, and a call that a seccomp filter refuses, are reported
    the same way, wherever they happened. A second Ctrl-C quits in silence. Any other exception is
    a bug, and keeps its traceback.

    Cyclic garbage is not collected: a command makes many objects and few cycles, and the search
    took 2 ms of each start and a tenth of each report. Long runs collect it
    (`purebpf.measure.run`). The interpreter searches once more as it ends, but not among frozen
    objects: that was an eighth of the CPU time of a short run.
    """
    collecting = gc.isenabled()
    gc.disable()
    atexit.unregister(gc.freeze)  # once, if a program runs several commands
    atexit.register(gc.freeze)
    try:
        return body()
    except KeyboardInterrupt:
        return INTERRUPTED
    except MemoryError:
        note(f"{name}: out of memory: {_MEMORY}")
        return FAILED
    except (PurebpfError, OSError) as error:
        text = _text_of(error, name)
        if text is None:
            raise
        note(f"{name}: {text}")
        return int(getattr(error, "exit_status", FAILED))
    finally:
        if collecting:
            gc.enable()


def _text_of(error: PurebpfError | OSError, name: str) -> str | None:
    """Return the text of an error, with advice if this process ran out of descriptors; None for
    a bug.
    """
    from purebpf.cli.library_advice import with_options
    from purebpf.loader.host.fd_limits import NONE_LEFT, explanation

    ours = with_options(str(error), name) if isinstance(error, PurebpfError) else None
    if not isinstance(error, OSError) or error.errno not in NONE_LEFT:
        return ours or _refusal(error)
    if isinstance(error, KernelError) and error.why:
        return ours
    text = ours or f"opening {error.filename or 'a file'}: {error.strerror}"
    return ". ".join((text, *explanation(error.errno)))


def _refusal(error: BaseException) -> str | None:
    """Return the text of a call without a file that a seccomp filter refused; None if none did."""
    from purebpf.syscall import proc

    if not isinstance(error, OSError) or error.errno not in (errno.EPERM, errno.ENOSYS):
        return None
    mode = (proc.status() or {}).get("Seccomp", "0")
    if error.filename is not None or mode == "0":
        return None
    return (
        f"a system call failed with {errno.errorcode[error.errno]}{_line_of(error)}. a seccomp "
        f"filter is active (/proc/self/status: Seccomp {mode}). Let it pass this call, and "
        "eventfd2, epoll_create1 and pipe2; in a container: --security-opt seccomp=unconfined"
    )


def _line_of(error: BaseException) -> str:
    """Return the line of code that raised an error: an OSError does not name its system call."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__, limit=-1)
    line = frames[-1].line if frames else None
    return f" in this line of {os.path.basename(frames[-1].filename)}: {line}" if line else ""


def note(text: str, *, indent: str = "") -> None:
    """Print a paragraph on standard error, wrapped; quoted lines below it stay unwrapped.

    A quotation begins at a line that is indented by four blanks, as in a FilterError.
    """
    paragraph, quotes, quotation = text.partition("\n    ")
    say(wrap_paragraph(paragraph, _WIDTH, indent) + quotes + quotation)


def wrap_paragraph(text: str, width: int, indent: str = "") -> str:
    """Return a text in lines of at most `width` columns, broken at blanks, all but the first
    indented.

    As textwrap.fill() without breaks in words; importing that takes 2 ms.
    """
    blank = text.expandtabs().translate(_BLANKS)
    lines: list[str] = []
    line, room = "", width
    for is_blank, run in groupby(blank, " ".__eq__):
        chunk = "".join(run)
        if is_blank:
            line += chunk if line or not lines else ""
        elif len(line) + len(chunk) <= room:
            line += chunk
        else:
            if line.rstrip(" "):
                lines.append(line.rstrip(" "))
                room = width - len(indent)
            line = chunk
    if line.rstrip(" "):
        lines.append(line.rstrip(" "))
    return f"\n{indent}".join(lines)


def say(line: str) -> None:
    """Print a line on standard error; that it is closed, full or unread is not an error.

    Characters that would move a terminal's cursor become `?`: the line may quote a file or a
    server.
    """
    from purebpf.cli import progress  # which --help does not need

    stream: TextIO | None = sys.stderr  # None where the descriptor is closed
    if stream is None:
        return
    try:
        progress.take_back()
        stream.write(_show(line) + "\n")
        stream.flush()
    except OSError:
        # what is still in the buffer must not make the interpreter's last flush fail
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _show(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else "?" for char in text)
