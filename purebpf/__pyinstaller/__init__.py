"""The package where PyInstaller looks for the hook: https://pyinstaller.org/en/stable/hooks.html."""

from __future__ import annotations

__all__ = ["hook_dirs"]


def hook_dirs() -> list[str]:
    """The folder of `hook-purebpf.py`: the entry point `hook-dirs` of `pyinstaller40`."""
    return list(__path__)
