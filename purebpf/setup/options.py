"""The command line of `python -m purebpf.setup`."""

from __future__ import annotations

import argparse
from argparse import ArgumentTypeError
from collections.abc import Sequence

from purebpf.cli import parser
from purebpf.cli.arguments import positive_int, user_id
from purebpf.setup.request import DEFAULT_SLOTS, Options

__all__ = ["build_parser", "parse"]

_MOST_SLOTS = 64

_DESCRIPTION = """Let ordinary users filter samples in the kernel: root pins programs for them
once, which they then fill in with their filters. status says what works, and
what not.
"""

_EXAMPLES = """examples:
  sudo python -m purebpf.setup pin --user ann    4 events at a time, for ann
  sudo python -m purebpf.setup pin --group dev --slots 8   8 for each of dev
  python -m purebpf.setup status                 what works, and what does not
  sudo python -m purebpf.setup unpin             take it all back
"""


def parse(argv: Sequence[str]) -> Options:
    """The options, or the end of the process with a usage message (status 2)."""
    made = build_parser()
    found = made.parse_args(argv)
    users = found.group or (() if found.user is None else (found.user,))
    if found.action == "pin" and not users:
        made.error("pin for whom? give --user or --group")
    if found.action == "status" and users:
        made.error("status is about the user who asks: `sudo -u USER` lets another one ask")
    return Options(found.action, users, found.slots, found.bpffs)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    made = parser.new("purebpf.setup", _DESCRIPTION, _EXAMPLES, usage="pin|unpin|status")
    made.add_argument("action", choices=("pin", "unpin", "status"), help="pin and unpin need root")
    either = made.add_mutually_exclusive_group()
    either.add_argument("--user", metavar="USER", type=user_id, help="this user, name or number")
    either.add_argument(
        "--group", metavar="GROUP", type=_members, help="each user who is in this group now"
    )
    made.add_argument(
        "--slots", metavar="N", type=_slots, default=DEFAULT_SLOTS,
        help="events that a user can filter at a time, each with a filter of its own (default: 4)",
    )  # fmt: skip
    made.add_argument(
        "--bpffs", metavar="DIR", default="", help="the bpf file system (default: /sys/fs/bpf)"
    )
    return made


def _slots(text: str) -> int:
    count = positive_int(text)
    if count > _MOST_SLOTS:
        raise ArgumentTypeError(f"{count} slots are too many: a user has at most {_MOST_SLOTS}")
    return count


def _members(text: str) -> tuple[int, ...]:
    """The users whose first group it is, and those it lists."""
    import grp
    import pwd

    try:
        group = grp.getgrgid(int(text)) if text.isdecimal() else grp.getgrnam(text)
    except (KeyError, OverflowError):
        raise ArgumentTypeError(f"there is no group {text!r}") from None
    everyone = pwd.getpwall()
    members = {each.pw_uid for each in everyone if each.pw_gid == group.gr_gid}
    members |= {each.pw_uid for each in everyone if each.pw_name in group.gr_mem}
    if not members:
        raise ArgumentTypeError(f"group {text!r} has no members")
    return tuple(sorted(members))
