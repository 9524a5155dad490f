"""The types behind sampled addresses: each program's file is opened, decoded and followed once."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import IO

from purebpf.closable import Closing
from purebpf.dataflow.claims import Claim, Unclaimed
from purebpf.dataflow.kernel_code import KernelCode, Site
from purebpf.dataflow.program import MissingPartError, NoDebugInfoError, Program
from purebpf.dataflow.slab_evidence import Verdict, judge, struct_of, type_by_cache
from purebpf.dataflow.stored import Answer
from purebpf.errors import FormatError, KernelError, NotSupportedError
from purebpf.loader.host.debug_files import Fetch, debug_file, image_of, open_part
from purebpf.observe.instruments.kernel_data import KernelData
from purebpf.observe.symbols.mapped_files import open_mapped
from purebpf.symbols.address_spaces import AddressSpaces
from purebpf.symbols.elf_image import EM_X86_64, PF_X, PT_LOAD, ElfImage, virtual_offset
from purebpf.symbols.frame import Address
from purebpf.symbols.proc_maps import Mapping
from purebpf.tools.sampleip.slab_objects import Objects, SlabObject
from purebpf.tools.types.kept_answers import KeptAnswers
from purebpf.tools.types.kept_kernel import KeptKernel

__all__ = ["Answer", "DataOfPrograms"]

_KERNEL = 1 << 63
IN_KERNEL = "in the kernel of a recording, whose code is not read"
GENERATED = "code that is in no file"
CONTRADICTED = "the slab cache of its address is for another type"
_UNKNOWN = (
    *(Unclaimed.UNKNOWN_BASE.value, Unclaimed.OUTSIDE.value),
    *(Unclaimed.UNKNOWN_INDEX.value, Unclaimed.INCOMPLETE.value),
)
NO_FILE = "the program's file is not there any more"


class DataOfPrograms(Closing):
    """Claims for addresses of processes.

    Args:
        spaces: the files that the processes have mapped.
        is_precise: the sampled event points at the instruction that caused it.
        is_live: kernel addresses are of the running kernel.
        fetch: downloads missing debug files.
    """

    def __init__(
        self,
        spaces: AddressSpaces,
        *,
        is_precise: bool,
        is_live: bool = False,
        fetch: Fetch | None = None,
    ) -> None:
        self._spaces, self._is_precise = spaces, is_precise
        self._programs: dict[object, _File | str] = {}
        self._open: list[IO[bytes]] = []
        self._is_live, self._fetch = is_live, fetch
        self._kernel: KernelData | str | None = None
        self._kept: KeptKernel | None = None

    def find(self, pid: int, address: int) -> Answer:
        """Return the data that a sample at an address of a process belongs to."""
        if address >= _KERNEL:
            return self._find_in_kernel(address)
        mapping = self._spaces.find(pid, Address(address))
        if mapping is None or mapping.file.is_anonymous or mapping.file.is_special:
            return Answer("", GENERATED)
        opened = self._program(mapping, pid)
        if isinstance(opened, str):
            return Answer("", opened)
        offset = virtual_offset(opened.image.segments, mapping.file_offset(Address(address)))
        if offset is None:
            return Answer("", NO_FILE)
        return opened.answer(offset, is_precise=self._is_precise)

    def _find_in_kernel(self, address: int) -> Answer:
        if not self._is_live:
            return Answer("", IN_KERNEL)
        if self._kernel is None:
            try:
                self._kernel = KernelData()
            except (KernelError, NotSupportedError) as error:
                self._kernel = f"in the kernel, whose types are not known: {error}"
        if isinstance(self._kernel, str):
            return Answer("", self._kernel)
        kept = self._kept_kernel(self._kernel)
        answer = kept.get(address)
        if answer is None:
            code = self._kernel.code(address)
            function, claim = code.claim(address, is_precise=self._is_precise)
            answer = Answer(function, claim.value if isinstance(claim, Unclaimed) else claim)
            kept.add(address, answer)
        return answer

    def _kept_kernel(self, kernel: KernelData) -> KeptKernel:
        """Return the answers of earlier runs."""
        if self._kept is None:
            self._kept = KeptKernel(
                is_precise=self._is_precise, span=kernel.core_function, read=kernel.read
            )
        return self._kept

    def weigh(self, address: int, answer: Answer, objects: Objects) -> tuple[Answer, Verdict]:
        """Compare an answer about kernel code with the slab objects that its registers led to.

        An inferred type that they contradict is dropped; an unknown one comes from the cache.

        Args:
            address: in the kernel.
            answer: of `find`.
            objects: by register, at the address.
        """
        if not isinstance(self._kernel, KernelData):
            return answer, Verdict.NONE
        kept = self._kept_kernel(self._kernel)
        weighed = kept.weighed(address, answer, objects)
        if weighed is not None:
            return weighed
        code = self._kernel.code(address)
        site = code.site(address, is_precise=self._is_precise)
        found = None if site is None else objects.get(site.register)
        weighed = self._weigh(code, site, answer, found)
        kept.add_weighed(address, "" if site is None else site.register, found, weighed)
        return weighed

    @staticmethod
    def _weigh(
        code: KernelCode, site: Site | None, answer: Answer, found: SlabObject | None
    ) -> tuple[Answer, Verdict]:
        """Compare an answer with the object that the register of its operand led to."""
        struct = found and struct_of(code.types, found.cache, found.object_size)
        if site is None or found is None or struct is None:
            return answer, Verdict.NONE
        claim = answer.claim
        if isinstance(claim, Claim):
            verdict = judge(site, struct, found.offset)
            if verdict is not Verdict.WRONG or not claim.is_inferred:
                return answer, verdict
        elif claim not in _UNKNOWN:
            return answer, Verdict.NONE
        else:
            verdict = Verdict.NONE
        typed = type_by_cache(site, struct, found.offset)
        if typed is not None:
            return Answer(answer.function, typed), Verdict.TYPED
        return Answer(answer.function, CONTRADICTED if verdict is Verdict.WRONG else claim), verdict

    def _program(self, mapping: Mapping, pid: int) -> _File | str:
        file_program = self._programs.get(mapping.file)
        if file_program is None:
            try:
                file_program = self._read(mapping, self._spaces.family(pid) or (pid,))
            except (OSError, FormatError):
                file_program = NO_FILE
            self._programs[mapping.file] = file_program
        return file_program

    def _read(self, mapping: Mapping, pids: tuple[int, ...]) -> _File | str:
        stream = os.fdopen(open_mapped(mapping, pids), "rb")
        self._open.append(stream)
        path = mapping.file.path
        image = image_of(stream.fileno(), path)
        if image.machine != EM_X86_64 or not image.is64:
            return "code of another machine than x86-64"
        owner = os.fstat(stream.fileno()).st_uid
        kept = KeptAnswers(image.build_id, owner, is_precise=self._is_precise)

        def read() -> Program:
            return self._read_types(image, stream, path, pids)

        return _File(image, read, kept)

    def _read_types(
        self, image: ElfImage, stream: IO[bytes], path: str, pids: tuple[int, ...]
    ) -> Program:
        """Return the code and the types of a file.

        Raises:
            NoDebugInfoError: it has no types; the message says why.
        """
        code = _Code(image)
        owner = os.fstat(stream.fileno()).st_uid

        def open_split(part: str) -> IO[bytes] | None:
            fd = open_part(part, pids, owner=owner)
            if fd is None:
                return None
            self._open.append(os.fdopen(fd, "rb"))
            return self._open[-1]

        debug = None
        if not _has_types(image):
            debug = debug_file(image, path, pids, _has_types, self._fetch, owner=owner)
            if debug is None:
                raise NoDebugInfoError("no DWARF (compile with -g, or install the debug file)")
            stream = os.fdopen(debug.fd, "rb")
            self._open.append(stream)
        own = path if debug is None else debug.path
        return Program(stream, code.read, open_split, f"{path}.dwp", own)

    def close(self) -> None:
        """Close the files; again is harmless."""
        for program in self._programs.values():
            if isinstance(program, _File):
                program.kept.save()
        if self._kept is not None:
            self._kept.save()
        opened, self._open = self._open, []
        if isinstance(self._kernel, KernelData):
            self._kernel.close()
        for stream in opened:
            stream.close()


class _File:
    """A mapped file: its headers, and the data that its code touches.

    Args:
        image: its headers.
        read: returns its code and types, if an answer is not kept.
        kept: answers of earlier runs.
    """

    def __init__(self, image: ElfImage, read: Callable[[], Program], kept: KeptAnswers) -> None:
        self.image, self.kept = image, kept
        self._read = read
        self._program: Program | str | None = None

    def answer(self, address: int, *, is_precise: bool) -> Answer:
        """Return the data that a sample at an address, as the file was linked, belongs to."""
        answer = self.kept.get(address)
        if answer is not None:
            return answer
        if self._program is None:
            try:
                self._program = self._read()
            except NoDebugInfoError as error:
                self._program = str(error)
        if isinstance(self._program, str):
            return Answer("", self._program)
        try:
            function, claim = self._program.claim(address, is_precise=is_precise)
        except MissingPartError as error:  # the file may be there the next time
            return Answer("", str(error))
        answer = Answer(function, claim.value if isinstance(claim, Unclaimed) else claim)
        self.kept.add(address, answer)
        return answer


class _Code:
    """The code of a file by the addresses that it was linked for."""

    def __init__(self, image: ElfImage) -> None:
        self._image = image

    def read(self, address: int, size: int) -> bytes:
        """Return bytes of code, fewer at the end of a segment."""
        for segment in self._image.segments:
            inside = address - segment.address
            is_code = segment.type == PT_LOAD and segment.flags & PF_X
            if is_code and 0 <= inside < segment.file_size:
                size = min(size, segment.file_size - inside)
                return self._image.read(segment.offset + inside, size)
        return b""


def _has_types(image: ElfImage) -> bool:
    return image.section(".debug_info") is not None
