"""Identifiers of executable files, by which OTLP tells builds apart.

OpenTelemetry defines them for mappings of profiles: the build IDs of GNU and Go toolchains, and a
hash of the file's ends for files that have neither (https://opentelemetry.io/docs/specs/otel/
profiles/mappings, alpha in 2026).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from purebpf.tuples import NamedTuple

__all__ = ["FileIds", "FileKey", "hash_of_ends", "ids_by_name"]

FileKey = tuple[str, str]
"""The path or name of a file, and its GNU build ID or ""."""

_END = 4096
_DIGEST = 16


class FileIds(NamedTuple):
    """The build IDs of a file, "" where it has none. `go` is text, the others are hexadecimal."""

    gnu: str = ""
    go: str = ""
    htlhash: str = ""


def hash_of_ends(read: Callable[[int, int], bytes], size: int) -> str:
    """Return the `htlhash` of a file: of its head, its tail and its length.

    Args:
        read: (offset, size) -> bytes of the file.
        size: of the file, in bytes.
    """
    from hashlib import sha256  # few runs need it, and it takes milliseconds

    tail = min(size, _END)
    digest = sha256(read(0, tail) + read(size - tail, tail) + size.to_bytes(8, "big"))
    return digest.digest()[:_DIGEST].hex()


def ids_by_name(
    used: Iterable[FileKey], known: Mapping[FileKey, FileIds]
) -> dict[FileKey, FileIds]:
    """Return the identifiers of files by base name, with the build ID and without.

    Frames with names have no build ID. They get the identifiers of the only file with this name;
    if there are several, nobody can tell which one they belong to.

    Args:
        used: the paths and build IDs of frames.
        known: identifiers by path and build ID.
    """
    files: dict[FileKey, set[FileIds]] = {}
    for path, build_id in used:
        name = path.rpartition("/")[2]
        ids = known.get((path, build_id), FileIds(build_id))
        for key in {(name, build_id), (name, "")}:
            files.setdefault(key, set()).add(ids)
    return {key: ids.copy().pop() for key, ids in files.items() if len(ids) == 1}
