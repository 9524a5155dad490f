"""The rules: functions of the evidence that yield findings, in files by idea.

Each rule looks for one kind of incident, names the process and the cost, and is silent where the
same signal is normal. Costs are seconds a second that somebody loses: waits of threads at work, CPU
time, or an estimate where neither can be measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from purebpf.findings.evidence import Evidence
from purebpf.findings.finding import Finding
from purebpf.findings.rules import (
    answers,
    blocking,
    cpu,
    databases,
    failures,
    file_calls,
    file_locks,
    filling,
    goroutines,
    handshakes,
    held_requests,
    interpreters,
    java_locks,
    kernel_waits,
    leaks,
    limits,
    locks,
    lookups,
    lost_packets,
    memory,
    network,
    pools,
    processes,
    retries,
    round_trips,
    serialization,
    stops,
    storage,
    storms,
    unread_by_peers,
)

__all__ = ["RULES"]

RULES: tuple[Callable[[Evidence], Iterable[Finding]], ...] = (
    *(limits.throttled_cgroups, limits.memory_limits, limits.queued_processes),
    *(limits.pinned_programs,),
    *(databases.waiting_backends, databases.repeated_snapshots, databases.failing_statements),
    *(databases.commits_without_standby,),
    *(interpreters.python_gil, interpreters.ruby_gvl, interpreters.garbage_collection),
    *(interpreters.java_monitors,),
    *(java_locks.parked_threads, interpreters.ruby_mutexes),
    *(locks.convoys, locks.deadlocks, locks.shared_semaphores, file_locks.file_lock_deadlocks),
    *(answers.slow_answers, answers.unanswered_requests, answers.delayed_acknowledgements),
    *(lookups.open_lookups, round_trips.round_trips, held_requests.held_requests),
    *(round_trips.questions_of_loops, unread_by_peers.stalled_connections),
    *(blocking.full_pipes, blocking.blocked_loops, blocking.children, blocking.other_waits),
    *(pools.accept_queues, pools.herds_of_workers, goroutines.waiting_handlers),
    *(stops.traced_programs, stops.stopped_programs),
    *(storage.synced_writes, storage.disk_waits, kernel_waits.kernel_waits),
    *(cpu.busy_programs, serialization.packed_tasks),
    *(processes.started_programs, processes.started_threads, processes.costly_forks),
    *(processes.zombies, processes.restarted_workers, processes.crashes),
    *(processes.short_programs,),
    *(file_calls.file_calls, storms.small_transfers, storms.timers, storms.wakeups, storms.signals),
    *(storms.switches, storms.calls),
    *(failures.spinning, failures.closed_in_vain, failures.errors, retries.polled_files),
    *(network.refused, network.refused_children, network.refused_datagrams),
    *(network.unreachable, network.resets, lost_packets.lost_packets),
    *(network.connections, network.local_connections, handshakes.tls_handshakes),
    *(network.datagrams, network.lost_datagrams),
    *(
        memory.page_faults,
        memory.major_faults,
        memory.growth,
        memory.java_growth,
        memory.direct_growth,
        filling.filling_file_systems,
        leaks.descriptor_leaks,
        leaks.thread_leaks,
        goroutines.goroutine_leaks,
    ),
)
