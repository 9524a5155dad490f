"""The saved profiles of a folder, and their entries in the list."""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Collection, Iterator
from itertools import count

from purebpf.errors import KernelError, PurebpfError
from purebpf.observe.saved import profile_loader
from purebpf.results import Profile
from purebpf.results.shape import page_facts
from purebpf.results.shape.stack_ends import describe_lost_callers
from purebpf.tuples import NamedTuple

__all__ = ["Folder", "Saved", "Summary"]

_ENDINGS = (".json", ".json.gz", ".folded", ".folded.gz", ".data", ".perf.data", ".otlp.gz")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DEPTH = 4
_MOST = 5000
_MOST_ENTRIES = 100_000
"""Names that a look into the folder and those below goes through: others may make any number."""
_BOUNDS = profile_loader.Bounds(
    size=32 << 20, lines=200_000, frames=4_000_000, lists=500_000, seconds=10.0
)
"""What reading one file may cost: others wait until it is read."""


class Saved(NamedTuple):
    """A file that may be a profile; `name` is its path from the folder."""

    name: str
    size: int
    modified_ns: int


class Summary(NamedTuple):
    """The list's entry of a profile. `started_s` is seconds since 1970, from the profile or its
    file; `is_complete` is what the profile's page says; `problem` says why the file cannot be read,
    "" if it can.
    """

    saved: Saved
    title: str
    unit: str
    total: int
    started_s: float
    elapsed_s: float
    is_complete: bool
    problem: str


class Folder:
    """Finds the profiles in a folder, up to four levels below it; links are not followed.

    Summaries are read once for each version of a file. Methods may be called from any thread.

    Raises:
        KernelError: the folder cannot be read.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._known: dict[Saved, Summary] = {}
        self._reading = threading.Lock()
        try:
            with os.scandir(path):
                pass
        except OSError as error:
            raise KernelError("open(2)", error.errno or 0, f"folder {path}") from None

    def files(self) -> list[Saved]:
        """Return the present files, by name; the first 5,000 among at most 100,000 entries."""
        return sorted(_walk(self.path, "", _DEPTH, count()))[:_MOST]

    def find(self, name: str) -> Saved | None:
        """The file of this name, if it is one of `files()`: no other path is ever opened."""
        return next((saved for saved in self.files() if saved.name == name), None)

    def read(self, saved: Saved) -> Profile:
        """The profile in a file.

        Raises:
            PurebpfError: as `profile_loader.read`.
        """
        path = os.path.join(self.path, saved.name)
        fd = self._open(saved.name)
        fd_path = f"/dev/fd/{fd}"
        try:
            with self._reading:  # each takes memory for all of its stacks
                profile = profile_loader.read(fd_path, timed=True, bounds=_BOUNDS)
        except PurebpfError as error:
            raise PurebpfError(str(error).replace(fd_path, path)) from None
        except MemoryError:
            raise PurebpfError(f"{path}: there is not enough memory to read it") from None
        finally:
            os.close(fd)
        profile.title = profile.title.replace(fd_path, path)
        self._known[saved] = _summarize(saved, profile)
        return profile

    def _open(self, name: str) -> int:
        """A descriptor of a regular file, by no link, whatever took its place since it was listed.

        Raises:
            KernelError: it is not there, or something else is.
        """
        *folders, last = name.split("/")
        try:
            at = os.open(self.path, _FOLDER)
            try:
                for part in folders:
                    below = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=at)
                    os.close(at)
                    at = below
                if stat.S_ISREG(os.stat(last, dir_fd=at, follow_symlinks=False).st_mode):
                    fd = os.open(last, _FILE, dir_fd=at)
                    if stat.S_ISREG(os.fstat(fd).st_mode):
                        return fd
                    os.close(fd)
                raise OSError(errno.ENOENT, "")
            finally:
                os.close(at)
        except OSError as error:
            number = error.errno or errno.EIO
            raise KernelError("open(2)", number, f"profile {self.path}/{name}") from None

    def known(self, saved: Saved) -> Summary | None:
        """The summary of a file that was read already."""
        return self._known.get(saved)

    def summarize(self, saved: Saved) -> Summary:
        """The summary of a file; reads it if it was not yet."""
        if saved not in self._known:
            try:
                self.read(saved)
            except PurebpfError as error:
                nothing = _summarize(saved, Profile())
                self._known[saved] = nothing._replace(problem=str(error), is_complete=False)
        return self._known[saved]

    def forget_all_but(self, files: Collection[Saved]) -> None:
        """Drop the entries of files that are gone, and of earlier versions."""
        self._known = {saved: self._known[saved] for saved in files if saved in self._known}


def _walk(root: str, below: str, depth: int, seen: Iterator[int]) -> Iterator[Saved]:
    """The profiles in a folder and those below it; `seen` counts the entries of all."""
    try:
        with os.scandir(os.path.join(root, below)) as scan:
            entries = [entry for entry in scan if next(seen) < _MOST_ENTRIES]
    except OSError:  # it went away, or is not for us
        return
    for entry in entries:
        name = os.path.join(below, entry.name)
        try:
            if entry.is_dir(follow_symlinks=False) and depth > 0:
                yield from _walk(root, name, depth - 1, seen)
            elif entry.is_file(follow_symlinks=False) and name.lower().endswith(_ENDINGS):
                status = entry.stat(follow_symlinks=False)
                yield Saved(name, status.st_size, status.st_mtime_ns)
        except OSError:
            continue


def _summarize(saved: Saved, profile: Profile) -> Summary:
    about = profile.about
    started_s, elapsed_s = about.get("started_s"), about.get("elapsed_s")
    return Summary(
        saved,
        page_facts.title(profile),
        profile.unit,
        profile.total,
        float(started_s) if isinstance(started_s, int | float) else saved.modified_ns / 1e9,
        float(elapsed_s) if isinstance(elapsed_s, int | float) else 0.0,
        is_complete=not (profile.loss.any or describe_lost_callers(profile)),
        problem="",
    )
