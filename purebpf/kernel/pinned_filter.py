"""Filter programs that root has pinned, for users who may not load any.

    /sys/fs/bpf/purebpf/filter/1000/0/program    one folder a user, one a slot
                                    /table       what the program asks, written by the user
                                    /counts      what it counted
                                    /lease       who uses the slot

Each slot is a program of its own with maps of its own, so nothing has to be looked up for a sample,
and events that children inherit run their parent's program by themselves. The folder of a user is
his alone (mode 0500, its files 0600), so nobody else can open, or even see, what is in it.

A slot is taken by flock(2) on its folder: the kernel gives it back when its process ends, however
that ends. `lease` says who has it, for `purebpf.setup status`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shlex
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple

from purebpf.abi.bpf import bpf_prog_type
from purebpf.abi.helpers import bpf_func_id
from purebpf.closing import Closing
from purebpf.errors import KernelError, NotSupportedError
from purebpf.filter.condition import Term
from purebpf.filter.table import listing, pack_table, table
from purebpf.kernel import cpus, map_pin
from purebpf.kernel.link import Event
from purebpf.kernel.map import Map
from purebpf.kernel.map_pin import BPFFS
from purebpf.kernel.perf_event import HasFileno
from purebpf.kernel.program import Program
from purebpf.syscall import bpf, perf_event, proc
from purebpf.syscall.descriptor import Descriptor, directory

__all__ = [
    "BPFFS",
    "FOLDER",
    "PinnedFilter",
    "Slot",
    "pin",
    "pin_command",
    "slots",
    "tells_ancestors",
    "unpin",
]

FOLDER = "purebpf/filter"

_OBJECT = "filter_pinned"
_FILES = ("program", "table", "counts", "lease")
_LEASE = struct.Struct("=QII")
_FIRST = struct.pack("=I", 0)
_ATTEMPTS = 3
_PAUSE_S = 0.005


class Slot(NamedTuple):
    """A slot as it is now.

    Attributes:
        uid: whose it is.
        number: from 0 up.
        taken: a process has it.
        pid: that process, or the last one; 0 when there was none.
        command: its name while it runs, else "".
        missing: files that should be there and are not.
    """

    uid: int
    number: int
    taken: bool
    pid: int
    command: str
    missing: tuple[str, ...]


def tells_ancestors() -> bool:
    """Whether this kernel's perf event programs may ask for the cgroups above a thread's own."""
    from purebpf.kernel.features import have_helper

    helper = bpf_func_id.BPF_FUNC_get_current_ancestor_cgroup_id
    return bool(have_helper(bpf_prog_type.BPF_PROG_TYPE_PERF_EVENT, helper))


def folder_of(uid: int, bpffs: str = BPFFS) -> str:
    """Where the slots of a user are, or would be."""
    return f"{bpffs}/{FOLDER}/{uid}"


def pin_command(uid: int, count: int = 0) -> str:
    """The command by which root gives a user slots."""
    slots_wanted = ["--slots", str(count)] if count else []
    command = [sys.executable, "-m", "purebpf.setup", "pin", "--user", str(uid)]
    return shlex.join(["sudo", *command, *slots_wanted])


def pin(uid: int, count: int, bpffs: str = BPFFS) -> str:
    """Give a user `count` slots, besides those he has; the folder. Needs root.

    Raises:
        KernelError: EPERM, this process may not load programs or change the owner of files;
            EINVAL, `bpffs` is no bpf file system.
        VerifierError: this kernel does not take the program.
    """
    _require_bpffs(bpffs)
    with _system_errors("pinning", bpffs), ExitStack() as undo:
        _let_pass(bpffs)
        for part in (f"{bpffs}/purebpf", f"{bpffs}/{FOLDER}"):
            _make_folder(part, 0o711, undo)
        folder = folder_of(uid, bpffs)
        _make_folder(folder, 0o700, undo)
        for number in range(count):
            if not os.path.isdir(f"{folder}/{number}"):
                _pin_slot(f"{folder}/{number}", uid, undo)
        os.chmod(folder, 0o500)
        os.chown(folder, uid, -1)
        undo.pop_all()
    return folder


def _pin_slot(folder: str, uid: int, undo: ExitStack) -> None:
    """Load the program with maps of its own, and give both to the user."""
    import purebpf
    from purebpf.filter.access import from_sample
    from purebpf.kernel.btf import kernel_btf
    from purebpf.objects import spec

    name = "filter_sample" if from_sample(kernel_btf()) else "filter_registers"
    fitting = spec(_OBJECT).set(has_ancestors=tells_ancestors())
    with purebpf.load(fitting.only(name)) as loaded:
        _make_folder(folder, 0o700, undo)
        pinned: dict[str, Program | Map] = {"program": loaded.programs[name]}
        pinned |= {each: loaded.maps[each] for each in _FILES[1:]}
        for file, each in pinned.items():
            path = f"{folder}/{file}"
            each.pin(path)
            undo.callback(_remove, path)
            os.chmod(path, 0o600)
            os.chown(path, uid, -1)
    os.chmod(folder, 0o500)
    os.chown(folder, uid, -1)


def unpin(uid: int, bpffs: str = BPFFS) -> bool:
    """Take a user's slots away; whether he had any. Programs live on in events that run them.

    Raises:
        KernelError: EPERM or EACCES, this process may not.
    """
    folder = folder_of(uid, bpffs)
    if not os.path.isdir(folder):
        return False
    with _system_errors("unpinning", folder):
        for place, _, files in os.walk(folder, topdown=False):
            for file in files:
                os.unlink(f"{place}/{file}")
            os.rmdir(place)
        for part in (f"{bpffs}/{FOLDER}", f"{bpffs}/purebpf"):
            with suppress(OSError):  # of other users, or of other tools
                os.rmdir(part)
    return True


def users(bpffs: str = BPFFS) -> tuple[int, ...]:
    """The users who have slots, by number.

    Raises:
        KernelError: EACCES, only root may look.
    """
    try:
        found = os.listdir(f"{bpffs}/{FOLDER}")
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise KernelError(f"opendir({bpffs}/{FOLDER})", error.errno or 0) from None
    return tuple(sorted(int(name) for name in found if name.isdecimal()))


def slots(uid: int, bpffs: str = BPFFS) -> tuple[Slot, ...]:
    """The slots of a user.

    Raises:
        KernelError: EACCES, they are another user's.
    """
    return tuple(_slot(uid, number, path) for number, path in _places(folder_of(uid, bpffs)))


def _places(folder: str) -> Iterator[tuple[int, str]]:
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise KernelError(f"opendir({folder})", error.errno or 0, why=_closed(folder)) from None
    for number in sorted(int(name) for name in names if name.isdecimal()):
        yield number, f"{folder}/{number}"


def _closed(folder: str) -> str:
    """What keeps this user from a folder of his own, if something does."""
    if os.path.basename(folder) != str(os.geteuid()):
        return "it is another user's"
    return f"the way to it is closed until root has run: {pin_command(os.geteuid())}"


def _slot(uid: int, number: int, path: str) -> Slot:
    missing = tuple(name for name in _FILES if not os.path.exists(f"{path}/{name}"))
    with _opened(path) as folder:
        taken = not _locked(folder)
    pid = start = 0
    if "lease" not in missing:
        with map_pin.open_map(f"{path}/lease") as lease:
            value = bytearray(_LEASE.size)
            bpf.map_lookup_elem(lease.fileno(), _FIRST, value)
            start, pid, _ = _LEASE.unpack(value)
    alive = bool(pid) and proc.start_ticks(pid) == start
    command = (proc.comm(pid) or "") if alive and taken else ""
    return Slot(uid, number, taken, pid, command, missing)


class PinnedFilter(Closing):
    """A slot of this user's, with a filter in its table, until it is closed.

    Args:
        terms: the filter.
        uid: whose slots to look at.
        bpffs: where root pinned them.

    Attributes:
        number: the slot.

    Raises:
        NotSupportedError: no slots, all of them taken, or a filter that is too big for one.
        KernelError: the slots are there and may not be opened: EPERM, EACCES.
    """

    def __init__(self, terms: Sequence[Term], uid: int, bpffs: str = BPFFS) -> None:
        self._entries = table(terms)
        self._terms = len(terms)
        with ExitStack() as stack:
            self.number, path = _claim(uid, folder_of(uid, bpffs), stack)
            self._program = stack.enter_context(Program.open(f"{path}/program"))
            self._counts = stack.enter_context(map_pin.open_map(f"{path}/counts"))
            owner = _LEASE.pack(proc.start_ticks(os.getpid()) or 0, os.getpid(), len(terms))
            for name, value in (("lease", owner), ("table", pack_table(self._entries))):
                with map_pin.open_map(f"{path}/{name}") as opened:
                    bpf.map_update_elem(opened.fileno(), _FIRST, value)
            self._before = self._read()
            self._owned = stack.pop_all()

    @property
    def program(self) -> Program:
        """The program."""
        return self._program

    def attach(self, event: Event) -> None:
        """Filter the samples of `event` and of those inherited from it, until they are closed.

        Raises:
            AttachError: EEXIST, the event runs a program already; EINVAL, it takes none.
        """
        try:
            perf_event.set_bpf(event.fileno(), self._program.fileno())
        except KernelError as error:
            from purebpf.kernel.attach.perf_event import refused

            raise refused(error, f"the pinned filter on perf event {event!r}") from None

    def listing(self) -> str:
        """The table, an entry a line."""
        return listing(self._entries)

    def counts(self) -> tuple[int, ...]:
        """Samples kept, and those that each term rejected first."""
        now = self._read()
        return tuple(after - before for after, before in zip(now, self._before, strict=True))

    def _read(self) -> tuple[int, ...]:
        return tuple(map(self._total, range(self._terms + 1)))

    def _total(self, counter: int) -> int:
        """A counter of all CPUs; terms beyond those that have one share the last."""
        value = bytearray(8 * len(cpus.possible()))
        key = struct.pack("=I", counter)
        bpf.map_lookup_elem(self._counts.fileno(), key, value)
        return sum(memoryview(value).cast("Q"))

    def close(self) -> None:
        """Give the slot back. Twice is harmless."""
        self._owned.close()


def _claim(uid: int, folder: str, stack: ExitStack) -> tuple[int, str]:
    """The first slot that is free, kept until `stack` is closed."""
    found = list(_places(folder))
    for attempt in range(_ATTEMPTS if found else 0):
        if attempt:
            time.sleep(_PAUSE_S)  # `slots` takes a lock for a moment to see whether it can
        for number, path in found:
            with ExitStack() as unless_locked:
                opened = unless_locked.enter_context(_opened(path))
                if _locked(opened):
                    stack.push(unless_locked.pop_all())
                    return number, path
    if found:
        more = pin_command(uid, 2 * len(found))
        reason = f"none of {len(found)} in {folder} is free; for more: {more}"
    else:
        reason = f"root has pinned none in {folder}; for some: {pin_command(uid)}"
    raise NotSupportedError("a pinned filter program", reason)


def _locked(folder: HasFileno) -> bool:
    """Take the folder's lock, which lasts as long as the descriptor; False: another has it."""
    try:
        fcntl.flock(folder.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _opened(path: str) -> Descriptor:
    try:
        return directory(path)
    except OSError as error:
        raise KernelError(f"open({path})", error.errno or 0) from None


def _require_bpffs(bpffs: str) -> None:
    kinds = [kind for place, kind in proc.mounts() if place == os.path.realpath(bpffs)]
    if not kinds or kinds[-1] != "bpf":
        why = f"{bpffs} is not a bpf file system"
        raise KernelError("pin", errno.EINVAL, why=why, fix=f"mount -t bpf bpf {bpffs}")


def _let_pass(bpffs: str) -> None:
    """Let every user through the file system's root, where he sees nothing."""
    mode = os.stat(bpffs).st_mode & 0o7777
    if not mode & 0o001:
        os.chmod(bpffs, mode | 0o011)  # noqa: S103 - to pass, not to look


def _make_folder(path: str, mode: int, undo: ExitStack) -> None:
    if not os.path.isdir(path):
        os.mkdir(path, mode)
        undo.callback(_remove_folder, path)
    os.chmod(path, mode)


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


def _remove_folder(path: str) -> None:
    with suppress(OSError):
        os.rmdir(path)


@contextmanager
def _system_errors(verb: str, place: str) -> Iterator[None]:
    """OSErrors of file system calls, as errors of ours."""
    try:
        yield
    except KernelError:
        raise
    except OSError as error:
        why = f"{error.filename}: {error.strerror}"
        fix = "run it as root" if isinstance(error, PermissionError) else ""
        what = f"{verb} filters in {place}"
        raise KernelError(verb, error.errno or 0, what, why=why, fix=fix) from None
