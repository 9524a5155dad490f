"""Root's work for users who may load no programs: pin slots, repair them, take them away.

Users may watch, and have made any files in their own folders in the same file system. So nothing is
done by path: see `purebpf.syscall.folder`. A slot appears in one step, when its folder gets its
mode: a killed `pin` leaves a slot with a fault, which the next one replaces.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache

from purebpf.abi.bpf import bpf_prog_type
from purebpf.abi.helpers import bpf_func_id
from purebpf.errors import KernelError
from purebpf.files.root_folders import lock_folder, reach_bpffs
from purebpf.observe.filters.pinned_slots import (
    BPFFS,
    FILE_MODE,
    FOLDER,
    FOLDER_MODE,
    MAPS,
    explain,
    find_faults,
    numbers,
)
from purebpf.syscall import bpf
from purebpf.syscall.folder import Folder, explain_distrust

__all__ = ["pin", "tells_ancestors", "unpin"]

_OBJECT = "filter_pinned"
_PASS = 0o011


@cache
def tells_ancestors() -> bool:
    """Return True if this kernel's perf event programs may ask for the cgroups above a thread's
    own.
    """
    from purebpf.loader.features.features import have_helper

    helper = bpf_func_id.BPF_FUNC_get_current_ancestor_cgroup_id
    return bool(have_helper(bpf_prog_type.BPF_PROG_TYPE_PERF_EVENT, helper))


def pin(uid: int, count: int, bpffs: str = BPFFS) -> str:
    """See that a user has `count` whole slots, and repair those beyond; the folder. Needs root.

    A folder that is the user's own, as the first layout had it, becomes root's. Slots that are
    whole stay as they are, taken or not.

    Raises:
        KernelError: EPERM, this process may not load programs or change the owner of files, or a
            folder on the way is another user's; EINVAL, `bpffs` is not a bpf file system.
        VerifierError: this kernel does not take the program.
    """
    with _by_root(bpffs), ExitStack() as held, ExitStack() as undo:
        root = held.enter_context(reach_bpffs(bpffs))
        if root.mode & _PASS != _PASS:  # users pass, and see nothing
            root.change(mode=root.mode | _PASS)
        parent_folder = root
        for name in FOLDER.split("/"):
            above, is_new = parent_folder, _is_missing(parent_folder, name)
            parent_folder = held.enter_context(above.make(name, FOLDER_MODE))
            if is_new:
                undo.callback(_remove_empty, above, name)
        held.enter_context(lock_folder(parent_folder))
        folder = held.enter_context(_make_user_folder(parent_folder, uid, undo))
        for number in sorted({*range(count), *numbers(folder)}):
            _pin_slot(folder, number, uid, undo)
        undo.pop_all()
        return folder.path


def _make_user_folder(parent_folder: Folder, uid: int, undo: ExitStack) -> Folder:
    """Make a user's folder, owned by root, also if something else was there."""
    name = str(uid)
    if _is_missing(parent_folder, name):
        undo.callback(_remove_empty, parent_folder, name)
    else:
        try:
            folder = parent_folder.enter(name)
        except KernelError as error:
            if error.errno != errno.ENOTDIR:
                raise
            parent_folder.remove(name)
        else:
            with folder:
                if explain_distrust(folder.status):
                    folder.change(mode=FOLDER_MODE, uid=os.geteuid(), gid=os.getegid())
    return parent_folder.make(name, FOLDER_MODE)


def _pin_slot(folder: Folder, number: int, uid: int, undo: ExitStack) -> None:
    """Pin a whole slot in place of a broken or missing one."""
    name = str(number)
    if not _is_missing(folder, name):
        if not find_faults(folder, uid, number):
            return
        folder.remove(name)
    undo.callback(_remove, folder, name)
    with folder.make(name, 0o700) as slot:
        _fill(slot, uid)
        slot.change(mode=FOLDER_MODE)


def _fill(slot: Folder, uid: int) -> None:
    """Load the program with separate maps, and give them to the user; the folder is root's."""
    from purebpf.filter.sample_layout import from_sample
    from purebpf.loader.load.load import load
    from purebpf.loader.types.kernel_btf import kernel_btf
    from purebpf.objects import spec

    program = "filter_sample" if from_sample(kernel_btf()) else "filter_registers"
    fitting = spec(_OBJECT).set(has_ancestors=tells_ancestors())
    with load(fitting.only(program)) as loaded:
        pinned = {"program": loaded.programs[program].fileno()}
        pinned |= {name: loaded.maps[name].fileno() for name in MAPS}
        for name, fd in pinned.items():
            bpf.obj_pin(fd, f"{slot.place}/{name}")
            node = slot.find(name)
            assert node is not None, "a folder that only root writes to"
            with node:
                node.change(mode=FILE_MODE, uid=uid)


def unpin(uid: int, bpffs: str = BPFFS) -> int:
    """Take a user's slots away; how many there were, whole or not.

    Programs live on in events that run them.

    Raises:
        KernelError: EPERM or EACCES, this process may not, or a folder on the way is another
            user's; ELOOP, EXDEV, a folder of the first layout, which was the user's, has files that
            purebpf does not remove.
    """
    name = str(uid)
    with _by_root(bpffs), ExitStack() as held:
        try:
            filters = held.enter_context(Folder.reach(f"{bpffs}/{FOLDER}"))
        except KernelError as error:
            if error.errno == errno.ENOENT:
                return 0
            raise
        held.enter_context(lock_folder(filters))
        if _is_missing(filters, name):
            return 0
        count = _count(filters, name)
        filters.remove(name)
        above, last = os.path.split(FOLDER)
        with Folder.reach(f"{bpffs}/{above}") as own:
            _remove_empty(own, last)
        with Folder.reach(bpffs) as root:
            _remove_empty(root, above)
        return count


def _count(filters: Folder, name: str) -> int:
    try:
        with filters.enter(name) as folder:
            return sum(1 for _ in numbers(folder))
    except KernelError as error:
        if error.errno != errno.ENOTDIR:
            raise
        return 0


def _is_missing(folder: Folder, name: str) -> bool:
    node = folder.find(name)
    if node is not None:
        node.close()
    return node is None


def _remove(folder: Folder, name: str) -> None:
    with suppress(KernelError):
        folder.remove(name)


def _remove_empty(folder: Folder, name: str) -> None:
    """Remove a directory, unless other users or tools have something in it."""
    with suppress(KernelError):
        folder.remove_empty(name)


@contextmanager
def _by_root(bpffs: str) -> Iterator[None]:
    """Return the advice about a refusal."""
    try:
        yield
    except KernelError as error:
        if error.errno == errno.EPERM and error.why and not error.fix:
            raise explain(error, bpffs) from None
        if error.errno in (errno.EACCES, errno.EPERM) and not error.fix:
            raise KernelError(
                error.call, error.errno, error.what, why=error.why, fix="run it as root"
            ) from None
        raise
