"""Names of functions in texts for people: `leaf(ulong, int) [shop]`, `run (flask/app.py:902)`."""

from __future__ import annotations

from purebpf.late_pattern import compile_later
from purebpf.results.model.spelling import printable
from purebpf.results.shape.functions import Function
from purebpf.symbols.script_names import spell_script
from purebpf.symbols.short_names import merge_clones, shorten

__all__ = ["display_name"]

_EXTENSION = compile_later(r"\.(cpython|abi)[\w-]*\.so")
"""How CPython's extension modules end (PEP 3149)."""


def display_name(function: Function, line: int = 0, *, whole: bool = False) -> str:
    """Return the name with its file, both shortened unless `whole`.

    Args:
        function: the function.
        line: the line of a script; 0: not known.
        whole: keep arguments, clones, paths and versions.
    """
    if function.kind == "python" and function.module:
        place = function.module if whole else spell_script(function.module)
        return printable(
            f"{function.name} ({place}:{line})" if line else f"{function.name} ({place})"
        )
    name = function.name if whole else merge_clones(shorten(function.name))
    file = function.module.rpartition("/")[2] or function.module
    if name.startswith(f"{file}!0x"):  # a function without a symbol: its name has the file
        return printable(name if whole else _EXTENSION.sub("", name))
    file = file.strip("[]")
    if not whole:
        file = _EXTENSION.sub("", file).partition(".so.")[0]
    return printable(f"{name} [{file}]" if file else name)
