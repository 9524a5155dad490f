// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// System calls as they happen: a record for each when it returns, with what its arguments point to.
//
// What that is depends on the call. These programs do what is the same for all; before and after,
// they jump to a program that purebpf/tools/trace/code.py wrote for the signature of the call, which
// copies strings and structs behind the record, straight on. A call without pointers has none.
// A tracepoint has a program of purebpf/tools/trace/tracepoint_programs.py, which jumps here.
#include "trace/losses.h"
#include "trace/unseen.h"

CONFIG u32 command_tgid = 0;	 // who is going to execute the command: its execve counts
CONFIG u32 exec_numbers[2] = {}; // of execve and execveat
CONFIG bool only_failed = false;
CONFIG u64 least_ns = 0; // only calls that take as long

#define SLOTS 512 // numbers of an ABI that have programs of their own
#define MAX_ERRNO 4095

u64 lost[3 * SLOTS] = {}; // dropped calls, by slot, then tracepoints; the last of each third: others
u64 lost_calls = 0;	  // and tracepoints

int send_call(u64 *ctx);

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 2 * SLOTS);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} at_start SEC(".maps"), at_end SEC(".maps");

// Where the programs of `at_end` go on.
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__array(values, int(u64 *));
} then SEC(".maps") = {.values = {[0] = (void *)&send_call}};

struct task_struct___exit {
	int exit_code;
} __attribute__((preserve_access_index));

struct kernel_siginfo {
	int si_signo;
	int si_errno;
	int si_code;
} __attribute__((preserve_access_index));

#define SIGINFO_FIELDS 16 // where the union of siginfo_t begins on 64-bit machines

// Where a call has its programs and its counter.
static __always_inline u32 slot_of(u32 nr, u8 abi)
{
	u32 first = abi == ABI_COMPAT ? SLOTS : 0;

	return first + (nr < SLOTS - 1 ? nr : SLOTS - 1);
}

// Whether a process that is not among those asked for is about to become the command.
static __always_inline bool may_become_command(u32 tgid, u32 nr)
{
	return command_tgid && tgid == command_tgid &&
	       (nr == exec_numbers[0] || nr == exec_numbers[1]);
}

// A call that begins on another CPU than those asked for may return on one of them.
static __always_inline int enter_unasked(void)
{
	struct task_state *state;

	if (!has_cpus)
		return 0;
	state = state_of(own_task(), true);
	if (state)
		state->call.open = UNASKED;
	return 0;
}

SEC("?tp_btf/sys_enter")
int enter_call(u64 *ctx)
{
	struct pt_regs *regs = (void *)ctx[0];
	u32 nr = ctx[1], tgid, tid;
	u8 is_awaited = 0, abi;
	struct task_state *state;
	struct call *call;

	if ((s32)nr < 0)
		return 0; // a tracer has replaced the number: stop_at_tracer() knows the call
	if (!own_task_wanted(&tgid, &tid)) {
		if (!may_become_command(tgid, nr))
			return enter_unasked();
		is_awaited = 1;
	}
	abi = abi_of(regs);
	if (has_calls && !call_wanted(nr, abi))
		return 0;
	state = state_of(own_task(), true);
	if (!state)
		return 0; // counted when it returns
	call = &state->call;
	call->event.tgid = tgid;
	call->event.tid = tid;
	call->nr = nr;
	call->abi = abi;
	call->is_awaited = is_awaited;
	call->missed = 0;
	call->entered = 1;
	call->used = 0;
	call->stack = 0;
	call->open = OPEN;
	read_call_arguments(call->arguments, (void *)regs, abi);
	call->event.time_ns = bpf_ktime_get_ns();
	bpf_tail_call(ctx, &at_start, slot_of(nr, abi));
	return 0;
}

static __always_inline void send(struct task_state *state)
{
	struct call *call = &state->call;
	u64 used = call->used, slot;

	call->open = CLOSED;
	call->lost = lost_calls;
	if (used > CAPTURE_ROOM)
		return; // not so
	if (!bpf_ringbuf_output(&events, state, sizeof(*call) + used, 0))
		return;
	slot = slot_of(call->nr, call->abi);
	OPAQUE(slot); // Linux 6.1 forgets a bound of 32 bits
	slot &= 2 * SLOTS - 1;
	__sync_fetch_and_add(&lost[slot], 1);
	__sync_fetch_and_add(&lost_calls, 1);
	__sync_fetch_and_add(&events_full, 1);
}

// What is known of the end of the call of the current task.
static __always_inline void end(struct call *call, u64 now, u8 ending)
{
	u64 began = call->event.time_ns;

	begin_event(&call->event, CALL, call->event.tgid, call->event.tid);
	call->event.time_ns = began;
	call->duration_ns = now - began;
	call->ending = ending;
	if (!call->event.tgid)
		COUNT(outside_namespace);
}

static __always_inline bool end_wanted(struct call *call, s64 result, u64 now)
{
	u32 tgid, tid;

	if (call->is_awaited && (result || !own_task_wanted(&tgid, &tid)))
		return false;
	if (only_failed && (u64)result < (u64)-MAX_ERRNO)
		return false;
	if (!least_ns)
		return true;
	if (!call->entered)
		COUNT(starts_unknown);
	return now - call->event.time_ns >= least_ns;
}

SEC("?tp_btf/sys_exit")
int leave_call(u64 *ctx)
{
	struct task_state *state = state_of(own_task(), false);
	struct call *call;
	u64 now;

	if (state && state->call.open == UNASKED) {
		state->call.open = CLOSED;
		return 0;
	}
	if (!state || state->call.open != OPEN)
		state = open_unseen((void *)ctx[0], ctx[1]);
	if (!state)
		return 0;
	now = bpf_ktime_get_ns();
	call = &state->call;
	if (!end_wanted(call, ctx[1], now)) {
		call->open = CLOSED;
		return 0;
	}
	call->result = ctx[1];
	end(call, now, RETURNED);
	bpf_tail_call(ctx, &at_end, slot_of(call->nr, call->abi));
	send(state);
	return 0;
}

SEC("?tp_btf/sys_exit")
int send_call(u64 *ctx)
{
	struct task_state *state = state_of(own_task(), false);

	if (state)
		send(state);
	return 0;
}

// The call that the current task ends in; NULL: none.
static __always_inline struct task_state *call_at_end(void)
{
	struct task_state *state = state_of(own_task(), false);
	struct pt_regs *regs;

	if (state && state->call.open == OPEN)
		return state;
	regs = call_ended_by_seccomp();
	return regs ? open_unseen(regs, -ENOSYS) : NULL;
}

// A thread ends: in a call that does not return.
SEC("?tp_btf/sched_process_exit")
int end_task(u64 *ctx)
{
	struct task_struct___exit *task = (void *)own_task();
	struct exited record = {};
	struct task_state *state;
	u64 now = bpf_ktime_get_ns();
	u32 tgid, tid;

	if (!own_task_wanted(&tgid, &tid))
		return 0;
	state = call_at_end();
	if (state) {
		if (!only_failed && end_wanted(&state->call, 0, now)) {
			end(&state->call, now, UNFINISHED);
			send(state);
		}
		state->call.open = CLOSED;
	}
	begin_event(&record.event, EXITED, tgid, tid);
	record.code = BPF_CORE_READ(task, exit_code);
	send_event(&record, sizeof(record));
	forget_by_address(bpf_get_current_task());
	return 0;
}

// A tracer, which is asked before the tracepoint sys_enter is passed, stops the task there. What it
// does to the registers may hide which call it was.
SEC("?tp_btf/sched_switch")
int stop_at_tracer(u64 *ctx)
{
	struct task_state *state;
	struct pt_regs *regs;
	u32 tgid, tid;
	s32 nr;

	if (!task_pt_regs || !(state_bits((void *)bpf_get_current_task()) & TASK_TRACED))
		return 0;
	regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	nr = call_in(regs);
	if (nr < 0 || !has_no_result(regs) || !own_task_wanted(&tgid, &tid))
		return 0;
	state = state_of(own_task(), true);
	if (!state || state->call.open)
		return 0;
	state->call.nr = nr;
	state->call.open = STOPPED;
	return 0;
}

// Without a siginfo: the kernel ends a thread whose process ends, or executes in another thread.
#define HAS_SIGINFO(info) ((u64)(info) > 1)

SEC("?tp_btf/signal_deliver")
int deliver_signal(u64 *ctx)
{
	struct kernel_siginfo *info = (void *)ctx[1];
	struct signal record = {};
	u32 tgid, tid;

	if (!HAS_SIGINFO(info) || !own_task_wanted(&tgid, &tid))
		return 0;
	begin_event(&record.event, SIGNAL, tgid, tid);
	record.number = BPF_CORE_READ(info, si_signo);
	record.code = BPF_CORE_READ(info, si_code);
	record.error = BPF_CORE_READ(info, si_errno);
	bpf_probe_read_kernel(record.fields, sizeof(record.fields), (void *)info + SIGINFO_FIELDS);
	send_event(&record, sizeof(record));
	return 0;
}

static __always_inline void send_passed(void *ctx, struct point_state *state)
{
	u64 size = state->point.size, slot;

	if (size > POINT_ROOM)
		size = POINT_ROOM;
	state->point.size = size;
	state->point.lost = lost_calls;
	if (bpf_probe_read_kernel(state->record, size, ctx))
		return; // not so
	if (!bpf_ringbuf_output(&events, state, sizeof(state->point) + size, 0))
		return;
	slot = state->point.number;
	if (slot > SLOTS - 1)
		slot = SLOTS - 1;
	__sync_fetch_and_add(&lost[2 * SLOTS + slot], 1);
	__sync_fetch_and_add(&lost_calls, 1);
	__sync_fetch_and_add(&events_full, 1);
}

// A tracepoint is passed; the program before has put its number and the size of its record.
SEC("?tracepoint")
int send_point(void *ctx)
{
	struct point_state *state;
	u32 zero = 0, tgid, tid;

	state = bpf_map_lookup_elem(&points, &zero);
	if (!state || !own_task_wanted(&tgid, &tid))
		return SEEN_BY_PERF;
	state->point.stack = 0;
	state->point.kernel_stack = 0;
	begin_event(&state->point.event, POINT, tgid, tid);
	bpf_tail_call(ctx, &then_point, POINT_STACKED);
	send_passed(ctx, state); // without stacks
	return SEEN_BY_PERF;
}

SEC("?tracepoint")
int send_stacked_point(void *ctx)
{
	struct point_state *state;
	u32 zero = 0;

	state = bpf_map_lookup_elem(&points, &zero);
	if (state)
		send_passed(ctx, state);
	return SEEN_BY_PERF;
}

static __always_inline int list_call(struct seq_file *out, struct task_struct *task,
				     struct task_state *state)
{
	u64 used;

	state->call.duration_ns = bpf_ktime_get_ns() - state->call.event.time_ns;
	if (state->call.duration_ns < least_ns)
		return 0;
	used = state->call.used;
	if (used > CAPTURE_ROOM)
		return 0; // not so
	state->call.event.kind = CALL;
	state->call.ending = IN_FLIGHT;
	state->call.lost = lost_calls;
	BPF_CORE_READ_STR_INTO(&state->call.event.comm, task, comm);
	bpf_seq_write(out, state, sizeof(state->call) + used);
	return 0;
}

// A call that was in progress all the time. Of a cgroup, user space asks.
static __always_inline int list_sleeper(struct seq_file *out, struct task_struct *task)
{
	struct task_struct___unseen *of = (void *)task;
	struct call call = {.event = {.kind = CALL}, .ending = IN_FLIGHT};
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	u32 tgid = task->tgid, tid = task->pid;
	s32 nr = call_of_sleeper(task, regs);
	u8 abi = abi_by_flag(task);

	if (pid_namespace_ino)
		numbers_of(task, &tgid, &tid);
	if (nr < 0 || (own_tgid && tgid == own_tgid) || !listed(tgid, tid))
		return 0;
	if (has_calls && !call_wanted(nr, abi))
		return 0;
	fill_unseen(&call, regs, nr, abi, tgid, tid);
	call.event.uid = BPF_CORE_READ(of, real_cred, uid.val);
	if (has_uid && call.event.uid != uid)
		return 0;
	call.lost = lost_calls;
	BPF_CORE_READ_STR_INTO(&call.event.comm, task, comm);
	bpf_seq_write(out, &call, sizeof(call));
	return 0;
}

// Every call that is open, for the end of a run.
SEC("?iter/task")
int list_calls(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct task_state *state;

	if (!task || only_failed)
		return 0;
	state = state_of(task, false);
	if (state && state->call.open == OPEN)
		return state->call.is_awaited ? 0 : list_call(ctx->meta->seq, task, state);
	if ((state && state->call.open) || !task_pt_regs || !has_targets())
		return 0; // of the whole machine, they would be all that sleeps
	return list_sleeper(ctx->meta->seq, task);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
