"""A function of a package stays one, whatever else of the package was imported before."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for module in pkgutil.iter_modules(package.__path__):
    if module.name != "hatch":  # wants hatchling
        importlib.import_module(f"{package.__name__}.{module.name}")
for name in package.__all__:
    if isinstance(getattr(package, name), type(sys)):
        print(name)
"""


@pytest.mark.parametrize("package", ["purebpf.build", "purebpf.asm", "purebpf.filter"])
def test_no_module_has_the_name_of_a_function(package: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, package], capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
