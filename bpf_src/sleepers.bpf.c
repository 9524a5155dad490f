// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Every thread that is off its CPU: where in the kernel, and with which user registers.
//
// It is read again and again. Of a thread that has not run since it was listed, nothing is read: it
// is where it was.
#include "pid_namespace.h"
#include "thread.h"
#include "user_registers.h"

#define MAX_DEPTH 127

CONFIG u32 own_tgid = 0;	 // a process that is left out
CONFIG bool task_pt_regs = true; // bpf_task_pt_regs() is there (Linux 5.15, commit dd6e10fbd9fb)

u64 generation = 1; // user space changes it to have all threads listed whole
bool asks = false;  // only whether they have run since they were listed: nothing is noted
u32 only_tgid = 0;  // list this process alone, in our PID namespace; 0: all

// When a thread was last listed.
struct task_state {
	u64 switches;
	u64 generation;
};

#include "task_state.h"

struct sleeper {
	u64 started_ns; // its start, which tells it from others of its number
	u64 switches;
	u32 tgid;
	u32 tid;
	u32 state; // TASK_* bits; 0: it waits for a CPU
	u32 here;  // whether its CPU is the one that this program runs on
	u32 is_whole;
	u32 depth; // frames of its kernel stack

	// only where it is whole
	struct registers registers;
	u64 pthread; // its thread pointer; 0: not known
	u64 has_registers;
	char comm[TASK_COMM_LEN];
	u64 addresses[MAX_DEPTH]; // of its kernel stack, innermost first: `depth` of them
};

struct sleeper *anchor_sleeper; // keeps the type in BTF

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sleeper);
} scratch SEC(".maps");

static __always_inline u64 describe(struct sleeper *sleeper, struct task_struct *task)
{
	long size = bpf_get_task_stack(task, sleeper->addresses, sizeof(sleeper->addresses), 0);

	if (size < 0 || size > (long)sizeof(sleeper->addresses))
		size = 0;
	sleeper->depth = size / sizeof(u64);
	sleeper->has_registers = task_pt_regs &&
				 registers_at((void *)bpf_task_pt_regs(task), &sleeper->registers);
	sleeper->pthread = thread_pointer(task);
	BPF_CORE_READ_STR_INTO(&sleeper->comm, task, comm);
	return size;
}

SEC("iter/task")
int list_sleepers(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	u64 size = __builtin_offsetof(struct sleeper, registers);
	struct task_state *state;
	struct sleeper *sleeper;
	u32 zero = 0;

	if (!task || task->on_cpu || task->flags & PF_KTHREAD)
		return 0;
	sleeper = bpf_map_lookup_elem(&scratch, &zero);
	if (!sleeper)
		return 0; // not so: there is one for each CPU
	sleeper->state = state_bits(task);
	if (sleeper->state & TASK_IS_DEAD)
		return 0;
	sleeper->tgid = task->tgid;
	sleeper->tid = task->pid;
	if (pid_namespace_ino)
		numbers_of(task, &sleeper->tgid, &sleeper->tid);
	if (!sleeper->tgid || sleeper->tgid == own_tgid)
		return 0;
	if (only_tgid && sleeper->tgid != only_tgid)
		return 0;
	sleeper->started_ns = task->start_time;
	sleeper->switches = switches_of(task);
	sleeper->here = cpu_of(task) == bpf_get_smp_processor_id();
	state = task_storage ? stored_state(task, true) : NULL;
	sleeper->is_whole = !state || state->switches != sleeper->switches ||
			    state->generation != generation;
	sleeper->depth = 0;
	if (sleeper->is_whole && !asks)
		size = __builtin_offsetof(struct sleeper, addresses) + describe(sleeper, task);
	if (size > sizeof(*sleeper))
		return 0; // not so, but the verifier does not know
	// What finds no room is listed again.
	if (!bpf_seq_write(ctx->meta->seq, sleeper, size) && state && !asks) {
		state->switches = sleeper->switches;
		state->generation = generation;
	}
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
