"""Pack a source archive again, so that the same files give the same bytes.

python scripts/release/normalize_sdist.py FILE.tar.gz

setuptools writes the owner, the mode and the time of each file, and the time of the compression.
The new archive has its members by name, of owner 0, with the time $SOURCE_DATE_EPOCH.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
import tarfile
from pathlib import Path

__all__ = ["main", "normalize"]

_EXECUTABLE = 0o100


def normalize(archive: bytes, time: int) -> bytes:
    """Return the archive with its members sorted and without traces of the machine that packed it.

    Args:
        archive: a .tar.gz file.
        time: of all members, in seconds since 1970.
    """
    packed = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive)) as source,
        gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=time) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as target,
    ):
        for member in sorted(source.getmembers(), key=lambda member: member.name):
            content = source.extractfile(member)
            target.addfile(_anonymous(member, time), content)
    return packed.getvalue()


def _anonymous(member: tarfile.TarInfo, time: int) -> tarfile.TarInfo:
    plain = tarfile.TarInfo(member.name)
    plain.type, plain.size, plain.linkname = member.type, member.size, member.linkname
    plain.mtime = time
    plain.mode = 0o755 if member.isdir() or member.mode & _EXECUTABLE else 0o644
    return plain


def main(path: str) -> None:
    """Replace one file."""
    file = Path(path)
    file.write_bytes(normalize(file.read_bytes(), int(os.environ["SOURCE_DATE_EPOCH"])))


if __name__ == "__main__":
    main(sys.argv[1])
