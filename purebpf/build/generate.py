"""Objects and typed modules beside the C of a package: what a build hook and tests make."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping

from purebpf.build.compile import compile as compile_c
from purebpf.build.stubs import stubs
from purebpf.elf.reader import read_object

__all__ = ["generate"]

_SUFFIX = ".bpf.c"
_OWN = '''

def read_own() -> Spec:
    """The object, which is beside this module in its package."""
    from importlib.resources import files

    return read_object(files(__package__) / {object_name!r})


def load_own(**variables: Any) -> Object:
    """Load it, with these values of its global variables."""
    return load(read_own().set(**variables))
'''


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

    Returns:
        The paths of what was made.

    Raises:
        CompileError, NotSupportedError, OSError: as `compile`.
    """
    paths = []
    directories = [*includes]
    for name in _programs(directory):
        base = os.path.join(directory, name)
        made = compile_c(
            base + _SUFFIX, includes=directories, defines=defines, cpu=cpu, optimise=optimise
        )
        spec = read_object(made)._replace(source=f"{name}.bpf.o")
        module = stubs(spec) + _OWN.format(object_name=f"{name}.bpf.o")
        python_name = re.sub(r"\W", "_", name)
        for path, contents in (
            (f"{base}.bpf.o", made),
            (os.path.join(directory, f"{python_name}_bpf.py"), module.encode()),
        ):
            _write(path, contents)
            paths.append(path)
    return paths


def _programs(directory: str | os.PathLike[str]) -> Iterator[str]:
    for name in sorted(os.listdir(directory)):
        if name.endswith(_SUFFIX):
            yield name.removesuffix(_SUFFIX)


def _write(path: str, contents: bytes) -> None:
    """Write a file, if it has other contents; readers see all of it or what was there before."""
    try:
        with open(path, "rb") as file:
            if file.read() == contents:
                return
    except FileNotFoundError:
        pass
    part = f"{path}.{os.getpid()}"
    with open(part, "wb") as file:
        file.write(contents)
    os.replace(part, path)
