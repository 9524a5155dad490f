"""Files that are shipped beside a module, from a folder or a zip."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["read_data"]


def read_data(module: Mapping[str, Any], name: str) -> bytes:
    """Return the bytes of a file beside a module, which passes its `globals()`.

    The module's own loader reads the file, as importlib.resources would ask it to.
    importlib.resources itself takes 15 ms to import.

    Raises:
        FileNotFoundError: there is no such file.
    """
    folder = module["__file__"].removesuffix("__init__.py")
    content: bytes = module["__loader__"].get_data(f"{folder}{name}")
    return content
