"""`purebpf vmlinux`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from purebpf.cli import command
from purebpf.tools.vmlinux.options import VmlinuxOptions, build_parser, parse

__all__ = ["build_parser", "main"]

NAME = "purebpf vmlinux"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    return command.run(NAME, lambda: _run(parse(argv)))


def _run(options: VmlinuxOptions) -> int:
    from purebpf.build.headers import make_vmlinux, read_sources
    from purebpf.cli.output import Output
    from purebpf.errors import KernelError
    from purebpf.loader.types.btf_file import read_btf_file

    try:
        btf = None if options.btf is None else read_btf_file(options.btf)
        sources = read_sources(options.sources)
    except OSError as error:
        if isinstance(error, KernelError):
            raise
        raise KernelError("open(2)", error.errno or 0, f"file {error.filename}") from None
    with Output(options.output) as output:
        output.write([make_vmlinux(*sources, btf=btf)])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
