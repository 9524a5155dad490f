"""The build hook of setuptools: compiles the C of a tool's packages into its wheel.

pyproject.toml names it: `cmdclass = {build_py = "purebpf.build.hook.BuildPy"}` of
`[tool.setuptools]`, and `*.bpf.o` as package data. `purebpf new` writes such a file. Options for
the compiler are in its table `[tool.purebpf.build]`.
"""

from __future__ import annotations

from typing import Any

from setuptools.command.build_py import build_py

from purebpf.build.generation import generate
from purebpf.build.options import read_options

__all__ = ["BuildPy"]


class BuildPy(build_py):  # type: ignore[misc]  # setuptools is not typed everywhere
    """Compiles every `*.bpf.c` of the packages, in place, before they are copied."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._are_compiled = False

    def finalize_options(self) -> None:
        """Compile: the results have to be there before files are listed."""
        super().finalize_options()
        if not self._are_compiled:
            self._are_compiled = True
            options = read_options(".")
            for package in self.packages or ():
                generate(self.get_package_dir(package) or ".", **options._asdict())
