"""The command line of bpftrace, for a link with its name: usage, version, errors."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from purebpf.cli import command
from purebpf.cli.parser import Parser
from purebpf.syscall import proc

__all__ = ["FOLLOWED", "BpftraceParser", "is_bpftrace", "take_name"]

FOLLOWED = "0.27.1"
"""The version of bpftrace whose output is followed."""
_NAME = "bpftrace"
_VALUES = ("argument -p/--pid: ", "argument -f/--format: ", "argument --probe-filter: ")
_USAGE = """USAGE:
    bpftrace [options] filename
    bpftrace [options] - <stdin input>
    bpftrace [options] -e 'program'
    use -- after filename/-e 'program' for named script parameters

OPTIONS:
    -e 'program'   execute this program
    -l, --list [search|filename]
                   list kernel probes or probes in a program
    -v, --verbose  enable verbose messages; with -l, also show probe arguments
    -h, --help     show this help message
    -V, --version  bpftrace version
    --info         print information about kernel BPF support

    -p, --pid PID  filter actions and enable USDT probes on PID
    -c, --cmd CMD  run CMD and enable USDT probes on resulting process
    --usdt-file-activation
                   activate usdt semaphores based on file path

    -o, --output FILE
                   redirect bpftrace output to FILE
    -f FORMAT      output format ('text', 'json')
    -B MODE        output buffering mode ('line', 'full', 'none')
    -q, --quiet    keep messages quiet
    --no-warnings  disable all warning messages

    --unsafe       allow unsafe/destructive functionality
    --probe-filter REGEX
                   only run probes whose name matches REGEX
    --mode MODE    used for benchmarking ('bench')
    --bench        run all bench: probes (same as --mode bench)
    --dry-run      terminate execution right after attaching all the probes
"""


def is_bpftrace() -> bool:
    """Return True if this program was started by the name of bpftrace."""
    return os.path.basename(sys.argv[0]) == _NAME


def take_name() -> None:
    """Let the kernel call this process bpftrace: `comm` in begin and end blocks, and pidof(8)."""
    proc.set_comm(_NAME)
    proc.set_command_line([_NAME, *sys.argv[1:]])


class BpftraceParser(Parser):
    """Reads the same options, and says what bpftrace says."""

    def error(self, message: str) -> NoReturn:
        """Print the error, and the usage if the options are unknown; end with status 1."""
        for wrong in _VALUES:
            if message.startswith(wrong):
                command.say(f"ERROR: {message.removeprefix(wrong)}")
                raise SystemExit(command.FAILED)
        command.say(f"ERROR: {message}\n{_USAGE}".rstrip())
        raise SystemExit(command.FAILED)

    def format_help(self) -> str:
        """Return bpftrace's usage."""
        return _USAGE
