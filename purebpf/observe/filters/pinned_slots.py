"""The folders of filter programs that root pins for users who may not load any, and their checks.

    /sys/fs/bpf/purebpf/filter/1000/0/program    one folder a user, one a slot
                                    /table       what the program asks, written by the user
                                    /counts      what it counted
                                    /lease       who uses the slot

The folders are root's (mode 0711): users pass through them, and cannot list or change them. The
four files are the user's (mode 0600), so no other user can open them. Users and root alike open
every component from the one before it and check it (`purebpf.syscall.folder`): a folder that
another user has put there is not used.

A session takes a slot by flock(2) on its `lease`: the kernel releases it when its process ends,
however that happens. The content of `lease` names the process, for `purebpf setup status`; the user
writes it, and purebpf believes it only as far as /proc confirms it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shlex
import stat
import struct
import sys
from collections.abc import Iterator
from contextlib import ExitStack

from purebpf.abi.bpf import bpf_map_type, bpf_prog_type
from purebpf.errors import KernelError
from purebpf.filter.decision_table import ENTRIES
from purebpf.loader.host.pins import BPFFS, open_map
from purebpf.loader.maps.map_info import read_info
from purebpf.loader.programs.program import Program
from purebpf.syscall import bpf, proc
from purebpf.syscall.descriptor import Descriptor
from purebpf.syscall.folder import Folder, Node, explain_distrust
from purebpf.tuples import NamedTuple

__all__ = [
    "BPFFS",
    "BROKEN",
    "FILES",
    "FILE_MODE",
    "FIRST",
    "FOLDER",
    "FOLDER_MODE",
    "LEASE",
    "MOST_SLOTS",
    "Slot",
    "explain",
    "find_faults",
    "folder_of",
    "lock",
    "numbers",
    "open_file",
    "open_program",
    "open_user",
    "pin_command",
    "slots",
    "users",
]

FOLDER = "purebpf/filter"
MOST_SLOTS = 64
"""Of a user: their numbers are tried one by one, as only root can list them."""

FOLDER_MODE = 0o711
FILE_MODE = 0o600

BROKEN = ENTRIES + 1
"""The counter of samples that got no verdict, the last one."""

LEASE = struct.Struct("=QII")
FIRST = struct.pack("=I", 0)


class _Shape(NamedTuple):
    """The properties of a map of bpf_src/filter_pinned.bpf.c."""

    type: int
    key_size: int
    value_size: int
    max_entries: int


MAPS = {
    "table": _Shape(bpf_map_type.BPF_MAP_TYPE_ARRAY, 4, 24 * ENTRIES, 1),
    "counts": _Shape(bpf_map_type.BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, BROKEN + 1),
    "lease": _Shape(bpf_map_type.BPF_MAP_TYPE_ARRAY, 4, LEASE.size, 1),
}
FILES = ("program", *MAPS)
"""What a slot consists of."""

_UID = re.compile("0|[1-9][0-9]{0,9}", re.ASCII)
_REFUSED = (errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE)
"""What says something about this process, and not about the slot."""


class Slot(NamedTuple):
    """A slot as it is now.

    Attributes:
        uid: the user it is for.
        number: from 0 up.
        taken: a process has it.
        pid: that process, or the last one; 0 when there was none.
        command: its name while it runs, else "".
        faults: why it cannot be used, until `pin` has repaired it; () when it is whole.
    """

    uid: int
    number: int
    taken: bool
    pid: int
    command: str
    faults: tuple[str, ...]


def folder_of(uid: int, bpffs: str = BPFFS) -> str:
    """Return the folder of a user's slots, which may not exist."""
    return f"{bpffs}/{FOLDER}/{uid}"


def pin_command(uid: int, count: int = 0, bpffs: str = BPFFS) -> str:
    """Return root's command to give a user slots, or to repair them."""
    slots_wanted = ["--slots", str(count)] if count else []
    slots_wanted += ["--bpffs", bpffs] if bpffs != BPFFS else []
    command = [sys.executable, "-P", "-m", "purebpf", "setup", "pin", "--user", str(uid)]
    return shlex.join(["sudo", *command, *slots_wanted])


def users(bpffs: str = BPFFS) -> tuple[int, ...]:
    """The users who have slots, by number.

    Raises:
        KernelError: EACCES, only root may look; EPERM, a folder on the way is another user's.
    """
    try:
        with Folder.reach(f"{bpffs}/{FOLDER}") as folder:
            names = folder.names()
    except KernelError as error:
        if error.errno == errno.ENOENT:
            return ()
        raise explain(error, bpffs) from None
    return tuple(sorted(int(name) for name in names if _UID.fullmatch(name)))


def slots(uid: int, bpffs: str = BPFFS) -> tuple[Slot, ...]:
    """The slots of a user.

    Raises:
        KernelError: EACCES, they are another user's; EPERM, a folder on the way is.
    """
    try:
        folder = open_user(uid, bpffs)
    except KernelError as error:
        if error.errno == errno.ENOENT:
            return ()
        raise
    with folder:
        return tuple(_slot(folder, uid, number) for number in numbers(folder))


def open_user(uid: int, bpffs: str = BPFFS) -> Folder:
    """A user's folder, which is root's like all those above.

    Raises:
        KernelError: ENOENT, root has pinned nothing for this user; EPERM, it, or a folder above,
            is another user's; EACCES, the way to it is closed.
    """
    try:
        return Folder.reach(folder_of(uid, bpffs))
    except KernelError as error:
        raise explain(error, bpffs, uid) from None


def explain(error: KernelError, bpffs: str, uid: int = -1) -> KernelError:
    """Return advice about a path that this process cannot pass, or had better not."""
    number, path, why, fix = error.errno or 0, error.what, error.why, error.fix
    if number == errno.EACCES and uid >= 0:
        why = f"the folder is closed until root runs: {pin_command(uid, 0, bpffs)}"
    elif number == errno.EPERM and error.call == "open" and not fix:  # its owner is not trusted
        if uid >= 0 and path == folder_of(uid, bpffs):
            fix = f"make it root's: {pin_command(uid, 0, bpffs)}"
        elif path.startswith(f"{bpffs}/"):
            fix = f"unless it is needed, remove it: sudo rm -r {path}"
    return KernelError(error.call, number, path, why=why, fix=fix)


def numbers(folder: Folder) -> Iterator[int]:
    """The numbers of the slots in a user's folder, whole or not."""
    for number in range(MOST_SLOTS):
        node = folder.find(str(number))
        if node is not None:
            node.close()
            yield number


def _slot(folder: Folder, uid: int, number: int) -> Slot:
    if faults := find_faults(folder, uid, number):
        return Slot(uid, number, False, 0, "", faults)
    with folder.enter(str(number)) as slot:
        with ExitStack() as stack:
            taken = not lock(slot, stack)
        start, pid = _read_lease(slot)
    alive = bool(pid) and proc.start_ticks(pid) == start and proc.owner(pid) == uid
    command = (proc.comm(pid) or "") if alive and taken else ""
    return Slot(uid, number, taken, pid, command, ())


def _read_lease(slot: Folder) -> tuple[int, int]:
    """When the process that has the slot began, and its number, as its user wrote them."""
    value = bytearray(LEASE.size)
    with open_file(slot, "lease") as lease:
        bpf.map_lookup_elem(lease.fileno(), FIRST, value)
    start, pid, _ = LEASE.unpack(value)
    return start, pid


def find_faults(folder: Folder, uid: int, number: int) -> tuple[str, ...]:
    """Why a slot in a user's folder cannot be used; () when it is whole.

    Raises:
        KernelError: EACCES, EPERM, this process may not look; EMFILE, ENFILE.
    """
    try:
        slot = folder.enter(str(number))
    except KernelError as error:
        if error.errno != errno.ENOTDIR:
            raise
        return (f"folder: {error.why}",)
    with slot:
        if why := explain_distrust(slot.status):
            return (f"folder: {why}",)
        if slot.mode != FOLDER_MODE:
            return (f"folder: it has mode {slot.mode:04o}: an interrupted `pin` leaves it so",)
        faults = [(name, _fault(slot, name, uid)) for name in FILES]
    return tuple(f"{name}: {why}" for name, why in faults if why)


def _fault(slot: Folder, name: str, uid: int) -> str:
    node = slot.find(name)
    if node is None:
        return "it does not exist"
    with node:
        if not stat.S_ISREG(node.status.st_mode):
            return "it is not a pin"
        if node.status.st_uid != uid:
            return f"it belongs to UID {node.status.st_uid}"
        if node.mode != FILE_MODE:
            return f"it has mode {node.mode:04o}, not {FILE_MODE:04o}"
    try:
        if name == "program":
            open_program(slot).close()
            return ""
        with open_file(slot, name) as opened:
            return "it is frozen" if proc.map_is_frozen(opened.fileno()) else ""
    except KernelError as error:
        if error.errno in _REFUSED:
            raise
        return error.why or str(error)


def open_program(slot: Folder) -> Program:
    """A slot's program.

    Raises:
        KernelError: as `open_file`.
    """
    with _pin(slot, "program") as node:
        try:
            program = Program.open(node.place)
        except KernelError as error:
            raise _explain_unopened(error, node) from None
    if program.type != bpf_prog_type.BPF_PROG_TYPE_PERF_EVENT:
        program.close()
        why = f"it is a program of type {program.type}, not a perf event program"
        raise KernelError("bpf(BPF_OBJ_GET)", errno.EINVAL, node.path, why=why)
    return program


def open_file(slot: Folder, name: str) -> Descriptor:
    """Open a slot's map, after checking its properties.

    Raises:
        KernelError: EACCES, EPERM, this process may not open it; ENOENT, it is not there; EINVAL,
            something else is.
    """
    with _pin(slot, name) as node:
        try:
            opened = open_map(node.place)
        except KernelError as error:
            raise _explain_unopened(error, node) from None
        info = read_info(opened.fileno())
        if _Shape(info.type, info.key_size, info.value_size, info.max_entries) == MAPS[name]:
            return opened
        opened.close()
        why = f"it is another map: {info}"
        raise KernelError("bpf(BPF_OBJ_GET)", errno.EINVAL, node.path, why=why)


def _pin(slot: Folder, name: str) -> Node:
    node = slot.find(name)
    if node is None:
        raise KernelError("open", errno.ENOENT, f"{slot.path}/{name}")
    if stat.S_ISREG(node.status.st_mode):
        return node
    node.close()
    raise KernelError("open", errno.EINVAL, node.path, why="it is not a pin")


def _explain_unopened(error: KernelError, node: Node) -> KernelError:
    why = error.why
    if error.errno == errno.EACCES:
        why = f"it belongs to UID {node.status.st_uid}"
    return KernelError(error.call, error.errno or 0, node.path, why=why, fix=error.fix)


def lock(slot: Folder, stack: ExitStack) -> bool:
    """Take a slot until `stack` is closed; False: another process has it.

    Raises:
        KernelError: EACCES, it is another user's; ENOENT.
    """
    with _pin(slot, "lease") as node:
        try:
            # The pin of a map with BTF can be opened, to read it as text; here, to lock it.
            opened = Descriptor(os.open(node.place, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            raise _explain_unopened(KernelError("open", error.errno or 0), node) from None
    stack.enter_context(opened)
    try:
        fcntl.flock(opened.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
