"""Tables of system calls as text, generated: names by number, parameters, and constants.

`syscalls_ABI.txt` has `NUMBER NAME` lines; x32 numbers are without __X32_SYSCALL_BIT. In
`signatures.txt`, a line is `CALL TYPE NAME,...`, as the kernel declares them. In `constants.txt`,
`NAME VALUE` lines follow the name of their table in brackets, ordered by value.
"""

from __future__ import annotations

from functools import cache

from purebpf.package_data import read_data

__all__ = ["find_constant", "read_constants", "read_table"]


def read_table(name: str) -> str:
    """Return the text of a table: `read_table("syscalls_x86_64")`."""
    return read_data(globals(), f"{name}.txt").decode()


def read_constants(table: str) -> dict[str, int]:
    """Return the constants of a table by name, ordered by value.

    Raises:
        KeyError: there is no such table.
    """
    rows = (line.split(" ") for line in _constants()[table].splitlines())
    return {name: int(value) for name, value in rows}


def find_constant(name: str) -> int | None:
    """Return the value of a constant of any table, None for a name that no table has."""
    for text in _constants().values():
        _, found, after = f"\n{text}".partition(f"\n{name} ")
        if found:
            return int(after.partition("\n")[0])
    return None


@cache
def _constants() -> dict[str, str]:
    """Return the lines of each table of constants."""
    texts = read_table("constants").removesuffix("\n").split("\n\n")
    return dict(text.removeprefix("[").split("]\n", 1) for text in texts)
