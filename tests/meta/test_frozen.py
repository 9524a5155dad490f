"""PyInstaller finds the hook; `scripts/clean_install.sh` freezes a tool and runs it."""

from __future__ import annotations

from configparser import ConfigParser
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_entry_point_leads_to_the_hook() -> None:
    config = ConfigParser()
    config.read(ROOT / "setup.cfg")
    name, _, target = config["options.entry_points"]["pyinstaller40"].strip().partition(" = ")
    module, _, function = target.partition(":")
    assert name == "hook-dirs"
    (folder,) = getattr(import_module(module), function)()
    assert Path(folder, "hook-purebpf.py").is_file()
