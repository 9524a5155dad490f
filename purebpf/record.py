"""The recorder of samples as a module with a short name: see `purebpf.tools.record`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from purebpf.lazy import names

if TYPE_CHECKING:
    from purebpf.tools.record import EventOption, Recorder, RecordOptions

__all__ = ["EventOption", "RecordOptions", "Recorder"]

if not TYPE_CHECKING:  # a type checker would take any misspelt name for granted
    __getattr__ = names(__name__, {name: f"purebpf.tools.record.{name}" for name in __all__})

if __name__ == "__main__":
    from purebpf.tools.record.__main__ import main

    sys.exit(main(sys.argv[1:]))
