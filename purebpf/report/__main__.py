"""`python -m purebpf.report`: the door of the command, which is `purebpf.reporter`."""

from __future__ import annotations

import sys

from purebpf.reporter.__main__ import build_parser, main

__all__ = ["build_parser", "main"]

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
