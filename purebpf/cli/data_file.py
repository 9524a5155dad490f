"""A binary result: written beside its name, which it gets when it is complete."""

from __future__ import annotations

import os
import stat

from purebpf.closing import Closing
from purebpf.errors import KernelError, NotSupportedError

__all__ = ["DataFile"]


class DataFile(Closing):
    """A file that grows, may be written to at any place, and appears when it is committed.

    Until then, and if its context ends first, what had the name before keeps it. The file is
    opened at once, so that a wrong path is known before the measurement and not after. It may be
    read by its owner only: samples tell what others do.

    Raises:
        KernelError: open(2), write(2) or rename(2) failed.
        NotSupportedError: `path` is no regular file, but a pipe or a device.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.realpath(path)  # the file behind a link is replaced, not the link
        self._offset = 0
        self._temporary = f"{self.path}.{os.getpid()}.part"
        try:
            if os.path.exists(self.path):
                self._check(os.stat(self.path))
            self._fd = os.open(
                self._temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
            )
        except OSError as error:
            raise self._error("open(2)", error) from None
        self._is_open = True

    def _check(self, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise NotSupportedError(
                f"output {self.path}",
                "its header is written last, so it must be a regular file and no pipe or device",
            )
        if not os.access(self.path, os.W_OK):
            raise PermissionError(13, "")

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """Write all of it where the last call ended."""
        with memoryview(data) as view:
            done = 0
            try:
                while done < len(view):
                    done += os.pwrite(self._fd, view[done:], self._offset + done)
            except OSError as error:
                raise self._error("write(2)", error) from None
        self._offset += done

    def fileno(self) -> int:
        """Its descriptor."""
        return self._fd

    def seek(self, offset: int, /) -> None:
        """The next byte goes there."""
        self._offset = offset

    def commit(self) -> None:
        """It is complete: let it have its name, and close it."""
        self._is_open = False
        try:
            os.close(self._fd)
            os.replace(self._temporary, self.path)
        except OSError as error:
            os.unlink(self._temporary)
            raise self._error("rename(2)", error) from None

    def close(self) -> None:
        """Leave nothing behind unless it was committed."""
        if self._is_open:
            self._is_open = False
            os.close(self._fd)
            os.unlink(self._temporary)

    def _error(self, call: str, error: OSError) -> KernelError:
        number = error.errno or 0
        return KernelError(call, number, f"output {self.path}", why=os.strerror(number))
