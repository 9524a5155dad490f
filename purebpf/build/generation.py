"""Objects and typed modules beside the C of a package, for a build hook and tests."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from purebpf.build.compilation import compile as compile_c
from purebpf.build.stubs import stubs
from purebpf.elf.reader import read_object
from purebpf.files.regular_file import opened_regular

__all__ = ["generate"]

_SUFFIX = ".bpf.c"


def generate(
    directory: str | os.PathLike[str],
    *,
    includes: Iterable[str | os.PathLike[str]] = (),
    defines: Mapping[str, object] | None = None,
    cpu: str = "v3",
    optimise: int | str = 2,
) -> list[str]:
    """Compile every `NAME.bpf.c` of a package to `NAME.bpf.o`, and write a typed `NAME_bpf.py`.

    `NAME_bpf.load_own(target_pid=4711)` loads the object from the package, in a zip too. Files
    that would not change are not written.

    Args:
        directory: of the package, without those below it.
        includes: as of `compile`.
        defines: as of `compile`.
        cpu: as of `compile`.
        optimise: as of `compile`.

    Returns: The paths of the new files.

    Raises:
        CompileError, NotSupportedError, OSError: as `compile`.
    """
    directories = [*includes]
    paths = []
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in _programs(fd):
            made = compile_c(
                os.path.join(directory, name + _SUFFIX),
                includes=directories, defines=defines, cpu=cpu, optimise=optimise,
            )  # fmt: skip
            spec = read_object(made)._replace(source=f"{name}.bpf.o")
            module = stubs(spec, object_name=f"{name}.bpf.o")
            python_name = re.sub(r"\W", "_", name)
            for file_name, contents in (
                (f"{name}.bpf.o", made),
                (f"{python_name}_bpf.py", module.encode()),
            ):
                _write(fd, file_name, contents)
                paths.append(os.path.join(directory, file_name))
    finally:
        os.close(fd)
    return paths


def _programs(fd: int) -> Iterator[str]:
    for name in sorted(os.listdir(fd)):
        if name.endswith(_SUFFIX):
            yield name.removesuffix(_SUFFIX)


def _write(fd: int, name: str, contents: bytes) -> None:
    """Write a file of a directory, if it has other contents, all at once.

    The directory may be another user's: an existing file is not opened unless it is a regular file,
    and a new file has a name that was not there.
    """
    try:
        with (
            opened_regular(f"/proc/self/fd/{fd}/{name}", follow=False) as old,
            open(old, "rb", closefd=False) as file,
        ):
            if file.read(len(contents) + 1) == contents:
                return
    except OSError:  # replaced, whatever it is
        pass
    part = f".{name}.{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(part, flags, 0o666, dir_fd=fd), "wb") as file:
            file.write(contents)
        os.replace(part, name, src_dir_fd=fd, dst_dir_fd=fd)
    except OSError:
        with suppress(OSError):
            os.unlink(part, dir_fd=fd)
        raise
