"""The live part: count sampled addresses, then find the data that their code touches."""

from __future__ import annotations

from typing import Self

from purebpf.closable import Closing
from purebpf.loader.host.debug_files import Fetch
from purebpf.loader.perf.perf_event import Event
from purebpf.measure.stop import HasFileno
from purebpf.results.model.spelling import spell_location
from purebpf.symbols.budget import Budget
from purebpf.tools.sampleip.request import SampleIpOptions as Sampling
from purebpf.tools.sampleip.session import IpCounts, Sampler
from purebpf.tools.types.attribute import DataOfPrograms
from purebpf.tools.types.request import TypesOptions
from purebpf.tools.types.result import DataTypes, Tally

__all__ = ["TypeSampler"]


class TypeSampler(Closing):
    """Samples from when its context is entered until `stop()`.

    Args:
        options: the measurement.
        command_pid: the child that waits to execute the command; 0: none.
        fetch: downloads missing debug files.

    Raises, when it is entered; nothing stays open then:
        NoSuchTargetError: a process, thread or cgroup that does not exist.
        KernelError: the kernel refused something; the message says why, and names a fix.
    """

    def __init__(
        self, options: TypesOptions, command_pid: int = 0, fetch: Fetch | None = None
    ) -> None:
        self._fetch = fetch
        sampling = Sampling(counting=True, **options._asdict())
        self._sampler = Sampler(sampling, command_pid, has_slabs=True)

    @property
    def event(self) -> Event:
        """The sampled event."""
        return self._sampler.event

    @property
    def budget(self) -> Budget:
        """Pays for the names of functions."""
        return self._sampler.budget

    def __enter__(self) -> Self:
        self._sampler.__enter__()
        return self

    def wait(self, *ends: HasFileno) -> bool:
        """Sleep for a moment; return True if the run is over, or one of `ends` is readable."""
        return self._sampler.wait(*ends)

    def drain(self) -> None:
        """Follow processes."""
        self._sampler.drain()

    def stop(self) -> DataTypes:
        """End the sampling, and return the data that the samples touch.

        Raises:
            KernelError: a map could not be read.
        """
        _, counts = self._sampler.stop()
        return self._add_up(counts)

    def _add_up(self, counts: IpCounts) -> DataTypes:
        tally = Tally()
        spaces, fetch = self._sampler.spaces, self._fetch
        with DataOfPrograms(spaces, is_precise=False, is_live=True, fetch=fetch) as data:
            for address, pid, samples, where in counts.rows:
                answer = data.find(pid, address)
                objects = counts.slabs.get(address) if address >> 63 else None
                if objects is not None:
                    answer, verdict = data.weigh(address, answer, objects)
                    tally.judge(verdict, samples)
                function = answer.function or spell_location(where, offset=False)
                tally.add(answer.claim, function, samples)
        return tally.finish(self.event.name, counts.loss)

    def close(self) -> None:
        """End it without a result, and release its resources; again is harmless."""
        self._sampler.close()
