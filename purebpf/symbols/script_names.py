"""Source files of scripts as people call them: `flask/app.py`, or `app.py` of the program. Pure."""

from __future__ import annotations

from functools import lru_cache

from purebpf.late_pattern import compile_later

__all__ = ["spell_script"]

_ROOTS = compile_later(
    r".*/(?:site-packages|dist-packages|node_modules|lib(?:64)?/python\d[\w.]*)/"
)


@lru_cache(maxsize=16384)
def spell_script(path: str) -> str:
    """Return the file with its package, for packages and the standard library; else its name.

    The package tells a framework's `app.py` from the program's own.
    """
    in_package = _ROOTS.sub("", path)
    return in_package if in_package != path else path.rpartition("/")[2]
