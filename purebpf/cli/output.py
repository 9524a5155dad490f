"""The destination of a result: standard output, or a file that appears when it is complete."""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from purebpf.closable import SoleOwner
from purebpf.errors import KernelError

if TYPE_CHECKING:
    from purebpf.files.atomic_file import PartFile

__all__ = ["Output"]


class Output(SoleOwner):
    """The stream of a command's result.

    A regular file is written under another name beside it and renamed when the context ends without
    an error: a reader never sees half of it, and a run that fails keeps the old one. It is opened
    at once, so that a wrong path fails before the measurement and not after. Any other existing
    file (/dev/null, a named pipe) is written to directly.

    A closed reader is not an error: the rest is dropped.

    Raises:
        KernelError: open(2), write(2) or rename(2) failed.
    """

    def __init__(self, path: str | None = None) -> None:
        self.path = path
        self._part: PartFile | None = None
        self._closed_pipe = False
        self._is_over = False
        self._stream = self._standard_output() if path is None else self._open(path)

    @property
    def is_stdout(self) -> bool:
        """True if the result goes to standard output."""
        return self.path is None

    @property
    def reader(self) -> Output | None:
        """This, where it is a pipe: poll(2) says POLLERR of it once its reader has gone."""
        try:
            is_pipe = stat.S_ISFIFO(os.fstat(self.fileno()).st_mode)
        except io.UnsupportedOperation:  # a program's own sys.stdout
            return None
        return self if is_pipe else None

    @property
    def columns(self) -> int | None:
        """The columns of the terminal that displays it; None: no terminal does."""
        if not self.is_stdout or not self._stream.isatty():
            return None
        return os.get_terminal_size(self.fileno()).columns or None

    def fileno(self) -> int:
        """Its descriptor."""
        return self._stream.fileno()

    def write(self, pieces: Iterable[str | bytes]) -> None:
        """Write the pieces and flush. Text is encoded; bytes are not, and need a real file."""
        if self._closed_pipe:
            return
        if self.is_stdout and (progress := sys.modules.get("purebpf.cli.progress")):
            progress.take_back()  # a line that something else has shown
        try:
            for piece in pieces:
                self._write(piece)
            self._stream.flush()
        except BrokenPipeError:
            self._drop_the_rest()
        except OSError as error:
            if self.is_stdout:
                self._drop_the_rest()
            raise self._error("write(2)", error) from None

    def _write(self, piece: str | bytes) -> None:
        if isinstance(piece, str):
            self._stream.write(piece)
            return
        self._stream.flush()
        self._stream.buffer.write(piece)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end(complete=kind is None)

    def finish(self) -> None:
        """Let the complete file appear now, also if other results fail later.

        Raises:
            KernelError: write(2) or rename(2) failed; there is no file then.
        """
        self._end(complete=True)

    def abandon(self) -> None:
        """It cannot be completed: leave nothing of it."""
        self._end(complete=False)

    def _end(self, *, complete: bool) -> None:
        if self.path is None or self._is_over:
            return
        self._is_over = True
        closed = False
        try:
            self._stream.close()
            closed = True
        except OSError as problem:
            if complete:  # else this is what went wrong before: the buffer is written again
                raise self._error("write(2)", problem) from None
        finally:
            self._settle(complete and closed)

    def _settle(self, complete: bool) -> None:
        """Let the file appear, or vanish."""
        if self._part is None:
            return
        try:
            if complete:
                self._part.commit()
            else:
                self._part.discard()
        except OSError as problem:
            call = "rename(2)" if complete else "unlink(2)"
            raise self._error(call, problem) from None

    def _open(self, path: str) -> TextIO:
        from purebpf.files.atomic_file import PartFile, open_special  # --help does not need it

        try:
            fd = open_special(path)
            if fd is None:
                self._part = PartFile(path)
                fd = self._part.fd
            return open(fd, "w", encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise self._error("open(2)", error) from None

    def _standard_output(self) -> TextIO:
        """Standard output; a name that its encoding lacks is escaped, and no reason to stop."""
        stream: TextIO | None = sys.stdout  # None where the descriptor is closed
        if stream is None:
            raise self._error("write(2)", OSError(errno.EBADF, ""))
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
        return stream

    def _drop_the_rest(self) -> None:
        """Let the flush at the stream's end, or the interpreter's, succeed too."""
        self._closed_pipe = True
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(nowhere, self._stream.fileno(), inheritable=self.path is None)
        os.close(nowhere)

    def _error(self, call: str, error: OSError) -> KernelError:
        from purebpf.files.atomic_file import why_refused

        name = "standard output" if self.path is None else self.path or repr(self.path)
        why = why_refused(error) if call == "open(2)" else ""
        return KernelError(call, error.errno or 0, f"output {name}", why=why)
