"""A binary result: written beside its name, which it gets when it is complete.

It has a name beside it all the time (`NAME.DIGITS.part`), so that the rest of a killed run can be
read.
"""

from __future__ import annotations

import os

from purebpf.closable import Closing
from purebpf.errors import KernelError, NotSupportedError
from purebpf.files.atomic_file import NotRegularError, PartFile, why_refused

__all__ = ["DataFile"]


class DataFile(Closing):
    """A file that grows, may be written to at any place, and appears when it is committed.

    Until then, and if its context ends first, the previous file keeps the name. The new content is
    gone then, unless it is worth keeping and the disk was full. The file is opened at once, so that
    a wrong path fails before the measurement and not after. Only its owner may read it: samples
    describe other users' programs.

    Attributes:
        is_worth_keeping: the owner sets it when the part written so far can be read.

    Raises:
        KernelError: open(2), write(2), close(2) or rename(2) failed.
        NotSupportedError: `path` is not a regular file, but a pipe or a device.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._offset = 0
        self.is_worth_keeping = False
        self._is_kept = False
        try:
            self._part = PartFile(path, private=True, named=True)
        except (NotRegularError, IsADirectoryError):
            raise NotSupportedError(
                f"output {path}",
                "its header grows with it, so it must be a regular file, not a pipe or device",
            ) from None
        except OSError as error:
            raise self._error("open(2)", error) from None
        self._fd = self._part.fd
        self._is_open = True

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """Write all of it where the last call ended."""
        with memoryview(data) as view:
            done = 0
            try:
                while done < len(view):
                    done += os.pwrite(self._fd, view[done:], self._offset + done)
            except OSError as error:
                self._is_kept = self.is_worth_keeping
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
        except OSError as error:
            self._part.discard()
            raise self._error("close(2)", error) from None
        try:
            self._part.commit()
        except OSError as error:
            raise self._error("rename(2)", error) from None

    def close(self) -> None:
        """Leave nothing behind unless it was committed."""
        if self._is_open:
            self._is_open = False
            os.close(self._fd)
            if not self._is_kept:
                self._part.discard()
            else:
                self._part.keep()

    def _error(self, call: str, error: OSError) -> KernelError:
        number = error.errno or 0
        name = self.path or repr(self.path)
        why = why_refused(error) or os.strerror(number)
        fix = f"What was recorded until then is in {self._part.name}" if self._is_kept else ""
        return KernelError(call, number, f"output {name}", why=why, fix=fix)
