"""The command line of `purebpf setup`."""

from __future__ import annotations

import argparse
from argparse import ArgumentTypeError
from collections.abc import Sequence

from purebpf.cli import parser
from purebpf.cli.arguments import positive_int, user_id
from purebpf.tools.setup.request import SetupOptions

__all__ = ["build_parser", "parse"]

_MOST_SLOTS = 64

_DESCRIPTION = """Let users without root filter samples in the kernel: root pins programs once,
and users set their filters in them. status shows what works and what does not.
"""

_EXAMPLES = """examples:
  sudo purebpf setup pin --user ann    4 events at a time, for ann
  sudo purebpf setup pin --group dev --slots 8   8 for each of dev
  purebpf setup status                 what works, and what does not
  sudo purebpf setup unpin             remove all of it
"""


def parse(argv: Sequence[str]) -> SetupOptions:
    """The options, or the end of the process with a usage message (status 2)."""
    command_parser = build_parser()
    parsed = command_parser.parse_args(argv)
    users = parsed.group or (() if parsed.user is None else (parsed.user,))
    if parsed.action == "pin" and not users:
        command_parser.error("users required: --user or --group")
    if parsed.action == "status" and users:
        command_parser.error("status shows the current user; for another one use: sudo -u USER")
    return SetupOptions(parsed.action, users, parsed.slots, parsed.bpffs)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    command_parser = parser.new("purebpf setup", _DESCRIPTION, _EXAMPLES, usage="pin|unpin|status")
    command_parser.add_argument(
        "action", choices=("pin", "unpin", "status"), help="pin and unpin need root"
    )
    either = command_parser.add_mutually_exclusive_group()
    either.add_argument("--user", metavar="USER", type=user_id, help="a user name or UID")
    either.add_argument(
        "--group", metavar="GROUP", type=_members, help="each present member of this group"
    )
    command_parser.add_argument(
        "--slots", metavar="N", type=_slots,
        help=(
            "events that a user can filter at the same time, each with its own filter "
            "(default: 4)"
        ),
    )  # fmt: skip
    command_parser.add_argument(
        "--bpffs", metavar="DIR", help="the bpf file system (default: /sys/fs/bpf)"
    )
    parser.take_defaults(command_parser, SetupOptions)
    return command_parser


def _slots(text: str) -> int:
    count = positive_int(text)
    if count > _MOST_SLOTS:
        raise ArgumentTypeError(f"{count} slots are too many (maximum {_MOST_SLOTS} for each user)")
    return count


def _members(text: str) -> tuple[int, ...]:
    """The users with it as their primary group, and those it lists."""
    import grp
    import pwd

    try:
        group = grp.getgrgid(int(text)) if text.isdecimal() else grp.getgrnam(text)
    except (KeyError, OverflowError):
        raise ArgumentTypeError(f"unknown group {text!r}") from None
    everyone = pwd.getpwall()
    members = {user.pw_uid for user in everyone if user.pw_gid == group.gr_gid}
    members |= {user.pw_uid for user in everyone if user.pw_name in group.gr_mem}
    if not members:
        raise ArgumentTypeError(f"group {text!r} has no members")
    return tuple(sorted(members))
