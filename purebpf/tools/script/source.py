"""`read_script`: the text of a script."""

from __future__ import annotations

import os
import sys

from purebpf.errors import KernelError, PurebpfError
from purebpf.tools.script.request import ScriptOptions

__all__ = ["MissingScriptError", "read_script"]


class MissingScriptError(PurebpfError):
    """A script that cannot be read, in bpftrace's words."""


def read_script(options: ScriptOptions) -> tuple[str, str]:
    """Return the text of the requested script, and its name in messages.

    Raises:
        KernelError: the file cannot be read.
    """
    if options.text is not None:
        return options.text, os.path.basename(options.path) or "stdin"
    if options.path == "-":
        return sys.stdin.buffer.read().decode("utf-8", "surrogateescape"), "stdin"
    try:
        with open(options.path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(), os.path.basename(options.path)
    except OSError as error:
        if options.is_bpftrace:
            reason = f"failed to open file '{options.path}': {error.strerror}"
            raise MissingScriptError(reason) from None
        raise KernelError("open(2)", error.errno or 0, f"script {options.path}") from None
