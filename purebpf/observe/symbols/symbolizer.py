"""`Symbolizer`: addresses of this machine to names, or to the reason why not.

Addresses of a stack other than the first are return addresses: they point behind a call, which may
be the last instruction of its function. So callers are looked up one byte earlier (DWARF 5, 6.4.4
explains it; libgcc, elfutils and libunwind do the same), and their offset still belongs to the
address itself. Where nothing is one byte earlier, the address itself counts: the kernel makes a
signal handler return to the first instruction of __restore_rt.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, cast

from purebpf.errors import FormatError, KernelError
from purebpf.files.held_files import HeldFiles
from purebpf.loader.host.backoff import Retries
from purebpf.loader.host.debug_files import Fetch
from purebpf.observe.symbols.answers import Answer, Answers, Asked, UserAnswers
from purebpf.observe.symbols.elf_files import ElfFiles, ElfFunctions, Problem
from purebpf.observe.symbols.file_frames import FileFrames
from purebpf.observe.symbols.function_starts import FunctionStarts
from purebpf.observe.symbols.kernel_symbols import KernelSymbols
from purebpf.observe.symbols.mapped_files import OpenFiles
from purebpf.observe.symbols.process_maps import read_maps
from purebpf.observe.symbols.vdso import VDSO, is_vdso, vdso_bytes, vdso_functions
from purebpf.symbols.address_spaces import AddressSpaces
from purebpf.symbols.budget import PROCESS, RUN, USER, Budget, OverBudgetError, Work
from purebpf.symbols.frame import Address, Frame, Reason, Unknown
from purebpf.symbols.intervals import RangeMap
from purebpf.symbols.java_words import JavaNames, has_java, is_java
from purebpf.symbols.longest_name import LONGEST_NAME, shorten
from purebpf.symbols.proc_maps import Mapping
from purebpf.symbols.python_words import PythonNames, count_native
from purebpf.symbols.runtimes import NATIVE_IMAGE, Runtime, runtime_of
from purebpf.syscall import host_clock, proc

if TYPE_CHECKING:
    from purebpf.observe.symbols.jit_symbols import GeneratedCode
    from purebpf.symbols.file_ids import FileIds, FileKey
    from purebpf.symbols.recorded import Recorded

__all__ = ["Symbolizer"]

_KEEP_ANSWERS = 1 << 16
_KEEP_ANSWERS_AT_REST = 1 << 13
_KEEP_KERNEL_ANSWERS = 1 << 12
_MOST_VDSOS = 64
_KEEP_PAYERS = 1 << 16
_ANSWERS_COST = 8
"""What an empty `UserAnswers` takes, in answers."""
_FIRST_PAGE = 1 << 12
_UNKNOWN_USER = -1
_USER_END = 1 << 56  # no machine has user addresses above (5-level paging on x86)


class Symbolizer:
    """Names addresses. Every question gets an answer, and no bad address stops a batch.

    A process is read from /proc at the first question about it. So ask while it lives, `remember`
    it, or feed `spaces` with the reports of a `SideBand`, which last after the process's exit.

    Holds no descriptors, except in a `batch`. Needs the rights to read /proc/PID/maps and
    /proc/PID/root of the process: the same user, or CAP_SYS_PTRACE.

    Args:
        spaces: the mappings of processes; missing ones are read from /proc and added.
        read_processes: False for earlier or foreign recordings: a process of the same number that
            runs here now is another one.
        fetch: gets the debug file of a build id that is not on this machine
            (`purebpf.observe.symbols.debuginfod`).
        budget: charged for reading; an address beyond it is `Unknown`, and counted there.

    Attributes:
        recorded: where the addresses were recorded; None: in this run.
        opened: mapped files that are still open when their process has ended (`UserStacks`);
            None: none are.
        java: names the Java frames of user stacks; None: they have none.
        python: names and merges the Python frames of user stacks; None: they have none.
        file_ids: the identifiers of the files that were read, by path and build ID, since
            `keep_file_ids` was called.
        with_addresses: False: frames of files and of the kernel itself tell functions apart, not
            places in them. All processes have one `Frame` for a function: its address is 0, and its
            offset belongs to the place which was met first.
    """

    def __init__(
        self,
        spaces: AddressSpaces | None = None,
        *,
        read_processes: bool = True,
        fetch: Fetch | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.budget = Budget() if budget is None else budget
        self.python: PythonNames | None = None
        self.java: JavaNames | None = None
        self._payers: dict[int, Work] = {}
        self._paying: Work | None = None
        self._read_processes = read_processes
        self.spaces = AddressSpaces() if spaces is None else spaces
        self._held = HeldFiles()
        self.recorded: Recorded | None = None
        self._files = ElfFiles(fetch, self.budget, self._held)
        self._starts = FunctionStarts(self.budget, self._held)
        self._frames = FileFrames(self._starts, self.spaces)
        self._vdso: dict[bytes, ElfFunctions | Problem] = {}  # by its content
        self._retries = Retries()
        self._unreadable: dict[int, Reason] = {}
        self._kernel = KernelSymbols()
        self._kernel_exact = Answers(self._kernel.resolve, 0)
        self._kernel_callers = Answers(self._kernel.resolve, 1)
        self._user_answers: dict[tuple[int, str | None], UserAnswers] = {}
        self._given = 0  # answers in there, about

    def __repr__(self) -> str:
        return f"Symbolizer({self.spaces!r})"

    @property
    def file_ids(self) -> dict[FileKey, FileIds]:
        """The identifiers of files, see above."""
        return self._files.ids or {}

    def keep_file_ids(self) -> None:
        """Fill `file_ids` from now on."""
        self._files.ids = {}

    @property
    def opened(self) -> OpenFiles | None:
        """Files that are open, see above."""
        return self._files.opened

    @opened.setter
    def opened(self, opened: OpenFiles | None) -> None:
        self._files.opened = self._starts.opened = opened

    def batch(self) -> HeldFiles:
        """Return a `with` block for many stacks: files that are used again and again stay open
        in it.
        """
        return self._held

    @cached_property
    def _jit(self) -> GeneratedCode:
        """The names of generated code, whose readers few processes need."""
        from purebpf.observe.symbols.jit_symbols import GeneratedCode

        return GeneratedCode(self.spaces.files, self._lives, self.budget)

    @property
    def _is_here(self) -> bool:
        """True if files count that only their path and inode identify."""
        return self.recorded is None or self.recorded.is_here

    @property
    def with_addresses(self) -> bool:
        """True if frames have addresses."""
        return self._kernel.with_addresses

    @with_addresses.setter
    def with_addresses(self, with_addresses: bool) -> None:
        self._kernel.with_addresses = with_addresses

    def remember(self, pid: int) -> bool:
        """Read a process's mappings now, so that it can be named after its exit.

        Returns:
            Whether there was such a process, and its mappings could be read.
        """
        self._read_maps(pid)
        return pid not in self._unreadable

    def forget_but(self, keep: Container[int]) -> None:
        """Forget the facts about all other processes, and files not read since then.

        Those that have exited are not asked about again, or seldom.
        """
        keep = _Living(keep, self.spaces)
        self.budget.rest()
        self._starts.rest(keep)
        self._files.rest(keep)
        self._kernel.rest()
        for kept_answers in (self._payers, self._unreadable):
            for pid in [pid for pid in kept_answers if pid not in keep]:
                del kept_answers[pid]
        for answers in (self._kernel_exact, self._kernel_callers):
            if len(answers) > _KEEP_KERNEL_ANSWERS:
                answers.clear()
        for place in [place for place in self._user_answers if place[0] not in keep]:
            del self._user_answers[place]
        places = self._user_answers.values()
        for given in places:
            given.code.clear()  # so that files which are asked about count as in use
        asked = sum(len(given.exact) + len(given.callers) for given in places)
        if asked > _KEEP_ANSWERS_AT_REST:
            for given in places:
                given.exact.rest()
                given.callers.rest()
        self._given = sum(
            _ANSWERS_COST + given.exact.count + given.callers.count for given in places
        )

    def runtime(self, pid: int) -> Runtime | None:
        """Return the language runtime of a process seen before, None if no runtime is
        recognised.
        """
        mappings = self.spaces.files(pid)
        runtime = runtime_of(mapping.file.path for mapping in mappings)
        if runtime is None and any(self._files.is_native_image(each, pid) for each in mappings):
            return Runtime(NATIVE_IMAGE)
        with suppress(OverBudgetError), self._payer(pid):
            if runtime is not None and self._is_here and self._jit.read(self.spaces.family(pid)):
                runtime = runtime._replace(is_named=True)
        if runtime is not None and self.java is not None and self.java.has(pid):
            runtime = runtime._replace(is_named=True)
        return runtime

    def kernel(self, addresses: Iterable[int]) -> list[Answer]:
        """Name kernel addresses, in their order, each looked up without change."""
        self._refresh_kernel()
        return [self._kernel_exact[address] for address in addresses]

    def kernel_stack(self, addresses: Sequence[int]) -> list[Answer]:
        """Name a kernel stack, the innermost address first: the others are return addresses."""
        self._refresh_kernel()
        return _stack(addresses, self._kernel_exact, self._kernel_callers)

    def _refresh_kernel(self) -> None:
        """Forget the names of loaded code when other code was loaded: it may have its place."""
        if self._kernel.refresh():
            for answers in (self._kernel_exact, self._kernel_callers):
                for address, answer in list(answers.items()):
                    if answer.module != "kernel" or isinstance(answer, Unknown):
                        del answers[address]

    def user(self, pid: int, addresses: Iterable[int], comm: str | None = None) -> list[Answer]:
        """Name addresses of a process, in their order, each looked up without change.

        Args:
            pid: the process (thread group) as we see it.
            addresses: in its address space.
            comm: the name of the thread that had them, which tells apart the programs that the
                process executed one after the other.
        """
        exact = self._answers(pid, comm).exact
        try:
            return [exact[address] for address in addresses]
        finally:
            self._settle()

    def user_stack(
        self, pid: int, addresses: Sequence[int], comm: str | None = None
    ) -> list[Answer]:
        """Name a user stack, the innermost address first: the others are return addresses."""
        answers = self._answers(pid, comm)
        native = addresses if self.python is None else addresses[: count_native(addresses)]
        try:
            with self._held:
                if self.java is not None and has_java(native):
                    return self._java_stack(self.java, pid, addresses, len(native), answers)
                named = _stack(native, answers.exact, answers.callers)
        finally:
            self._settle()
        if self.python is None or len(native) == len(addresses):
            return named
        return [*self.python.merge(pid, addresses, named)]

    def _java_stack(
        self,
        java: JavaNames,
        pid: int,
        addresses: Sequence[int],
        native: int,
        answers: UserAnswers,
    ) -> list[Answer]:
        """Name a stack with Java frames; Python's, whose order is not known, stand behind."""
        named: list[Answer] = []
        for at, address in enumerate(addresses[:native]):
            if is_java(address):
                named += java.frames(address)
            else:
                named.append((answers.callers if at else answers.exact)[address])
        if self.python is not None and native < len(addresses):
            named += self.python.merge(pid, addresses[native:], [])
        return named

    def return_slot(self, pid: int, address: int, comm: str | None = None) -> int | None:
        """Return the distance from the stack pointer to a leaf's return address, by its file's
        rules.

        None where that is not known, or where the rule is not relative to the stack pointer.
        """
        mapping = self._mapping(pid, address, comm)
        if mapping is None or mapping.file.is_special:
            return None
        if mapping.file.is_anonymous and not mapping.file.is_memory_file:
            return None
        where = mapping.file_offset(Address(address))
        try:
            with self._payers.get(pid) or self._payer(pid):
                return self._starts.return_slot(mapping, self.spaces.family(pid), where)
        except OverBudgetError:
            return None

    def _answers(self, pid: int, comm: str | None) -> UserAnswers:
        """Return the answers about a process, which hold as long as its mappings do not change."""
        kept_answers = self._user_answers.get((pid, comm))
        version = self.spaces.version(pid)
        if kept_answers is None or kept_answers.version != version:
            if self._given > _KEEP_ANSWERS:
                self._user_answers.clear()
                self._given = 0
            self._given += _ANSWERS_COST
            asked = Asked(pid, comm, RangeMap())
            resolve = partial(self._resolve, asked)
            kept_answers = UserAnswers(
                version, Answers(resolve, 0), Answers(resolve, 1), asked.code
            )
            self._user_answers[pid, comm] = kept_answers
        return kept_answers

    def _resolve(self, asked: Asked, address: int, back: int) -> Answer:
        """The answer, as far as the accounts of the process have enough for it."""
        self._given += 1
        code = asked.code.find(address - back)
        if code is not None:
            bias, functions = code
            frame = functions.find(address - back - bias)
            if frame is not None and len(frame.name) <= LONGEST_NAME:
                return frame
        try:
            if self._paying is None:
                payer = self._payers.get(asked.pid) or self._payer(asked.pid)
                self.budget.enter(payer)
                self._paying = payer
            else:
                self.budget.check(self._paying)
            answer = self._look_up(asked, address, back)
        except OverBudgetError as error:
            self.budget.skipped += 1
            reason = Reason.OVER_BUDGET if error.kind else Reason.INTERRUPTED
            return Unknown(reason, "", Address(address), "user", error.detail)
        if isinstance(answer, Unknown):
            self.budget.skipped += answer.reason is Reason.OVER_BUDGET
        elif len(answer.name) > LONGEST_NAME:
            self.budget.shortened += 1
            answer = answer._replace(name=shorten(answer.name))
        return answer

    def _settle(self) -> None:
        """Close the accounts that the first new address of a stack opened: the clock is slow."""
        if self._paying is not None:
            self._paying = None
            self.budget.leave()

    def _payer(self, pid: int) -> Work:
        """The accounts that pay for a process; the user of an exited one is unknown."""
        kept_answers = self._payers.get(pid)
        if kept_answers is None:
            names = {RUN: 0, USER: self._user_of(pid), PROCESS: pid}
            if not self._read_processes:  # numbers of another time or machine
                del names[USER]
            if len(self._payers) >= _KEEP_PAYERS:
                self._payers.clear()
            kept_answers = self._payers[pid] = self.budget.on_behalf(**names)
        return kept_answers

    def _user_of(self, pid: int) -> int:
        for member in self.spaces.family(pid):
            with suppress(KernelError):
                user = proc.real_user(member) if self._lives(member) else None
                if user is not None:
                    return user
        return _UNKNOWN_USER

    def _look_up(self, asked: Asked, address: int, back: int) -> Answer:
        pid = asked.pid
        mapping = self._mapping(pid, address - back, asked.comm)
        if mapping is None:
            return _unknown(self._why_unmapped(pid, address, back), address)
        file = mapping.file
        functions: ElfFunctions | Problem
        in_memory = self._in_memory(mapping, pid) if file.is_memory_file else None
        if in_memory is not None:
            functions = in_memory
        elif file.is_anonymous:
            return self._name_generated(pid, address, back, file.path)
        elif file.path == VDSO:
            functions = self._vdso_of(mapping, pid)
        elif file.is_special:
            return _unknown(Reason.NO_FUNCTION, address, file.path)
        elif self.spaces.is_contested(pid, address - back, asked.comm):
            return _unknown(Reason.CONTESTED, address)
        elif not (self._is_here or file.build_id):
            functions = Problem(Reason.OTHER_MACHINE)
        else:
            functions = self._functions(mapping, pid)
        if isinstance(functions, Problem):
            where = mapping.file_offset(Address(address))
            return Unknown(
                functions.reason,
                file.path,
                Address(address),
                "user",
                functions.detail,
                file.build_id,
                where,
            )
        name = self._frames.at_place if self.with_addresses else self._frames.of_function
        try:
            return name(functions, mapping, asked, address, back)
        except (FormatError, OSError):  # the kept table is gone
            self._files.forget(functions)
            asked.code.clear()
            return self._look_up(asked, address, back)

    def _functions(self, mapping: Mapping, pid: int) -> ElfFunctions | Problem:
        kept_answers = self._files.known(mapping, pid)
        return kept_answers or self._files.functions(mapping, self.spaces.family(pid))

    def _in_memory(self, mapping: Mapping, pid: int) -> ElfFunctions | None:
        """Return the functions of a memory file; None where it holds generated code."""
        if not self._read_processes:  # no other place shows it
            return None
        functions = self._functions(mapping, pid)
        return None if isinstance(functions, Problem) else functions

    def _mapping(self, pid: int, address: int, comm: str | None) -> Mapping | None:
        """The mapping of an address; /proc is read for a new process, and now and then later."""
        mapping = self.spaces.find(pid, address, comm)
        if mapping is None and self._lives(pid) and self._retries.due(pid):
            version = self.spaces.version(pid)
            self._read_maps(pid)
            if self.spaces.version(pid) != version:
                self._retries.reset(pid)
                mapping = self.spaces.find(pid, address, comm)
        return mapping

    def _lives(self, pid: int) -> bool:
        """Return True if /proc may be read for it."""
        return self._read_processes and not self.spaces.has_exited(pid)

    def _read_maps(self, pid: int) -> None:
        now = host_clock.monotonic_ns()
        try:
            text = read_maps(pid)
            comm = proc.comm(pid) or ""
        except KernelError:
            self._note_unreadable(pid, Reason.FORBIDDEN)
            return
        if text is None:
            self._note_unreadable(pid, Reason.HIDDEN if proc.hides(pid) else Reason.EXITED)
        else:
            self._unreadable.pop(pid, None)
            self.spaces.snapshot(pid, text, comm=comm, time=now)

    def _note_unreadable(self, pid: int, reason: Reason) -> None:
        if len(self._unreadable) >= _KEEP_PAYERS:
            self._unreadable.clear()
        self._unreadable[pid] = reason

    def _why_unmapped(self, pid: int, address: int, back: int) -> Reason:
        if not self.spaces.knows(pid):
            return self._unreadable.get(pid, Reason.EXITED)
        if back or not _FIRST_PAGE <= address < _USER_END:
            return Reason.GARBAGE
        return Reason.UNMAPPED

    def _name_generated(self, pid: int, address: int, back: int, path: str) -> Answer:
        if not self._is_here:
            return _unknown(Reason.OTHER_MACHINE, address, path)
        symbol = self._jit.find(self.spaces.family(pid), address - back)
        if isinstance(symbol, Reason):
            return _unknown(symbol, address, path)
        name, offset = symbol
        return Frame(name, offset + back, "[jit]", Address(address), "user")

    def _vdso_of(self, mapping: Mapping, pid: int) -> ElfFunctions | Problem:
        if self.recorded is not None and not is_vdso(self.recorded.vdso):
            reason = Reason.OTHER_KERNEL if self.recorded.vdso else Reason.UNPROVEN_KERNEL
            return Problem(reason, self.recorded.vdso)
        content = vdso_bytes(mapping, pid if self._read_processes else None)
        if content not in self._vdso:
            if len(self._vdso) >= _MOST_VDSOS:
                self._vdso.clear()
            self._vdso[content] = vdso_functions(content)
        return self._vdso[content]


class _Living:
    """The processes among some that have not exited."""

    def __init__(self, pids: Container[int], spaces: AddressSpaces) -> None:
        self._pids, self._spaces = pids, spaces

    def __contains__(self, pid: object) -> bool:
        return pid in self._pids and not self._spaces.has_exited(cast("int", pid))


def _stack(addresses: Sequence[int], exact: Answers, callers: Answers) -> list[Answer]:
    if not addresses:
        return []
    return [exact[addresses[0]], *map(callers.__getitem__, addresses[1:])]


def _unknown(reason: Reason, address: int, module: str = "") -> Unknown:
    return Unknown(reason, module, Address(address), "user")
