// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The threads of one process: state, and the user registers that each entered the kernel with.
#include "pid_namespace.h"
#include "thread.h"
#include "user_registers.h"

CONFIG u32 wanted_tgid = 0; // in the namespace that tasks are numbered in

struct pt_regs {
	unsigned long orig_ax; // x86
	unsigned long di;
	u64 orig_x0; // arm64: what x0 was before the call's result
	int syscallno;
} __attribute__((preserve_access_index));

struct thread_registers {
	u32 tid;
	u32 state; // TASK_* bits; 0: runs, or waits for a CPU
	u32 on_cpu;
	u32 has_registers;
	u64 switches; // times that it left a CPU
	u64 pthread;  // where its thread-specific data is
	s64 call;     // that it is in; -1: none
	u64 argument; // the first one of the call
	struct registers registers;
	char comm[TASK_COMM_LEN];
};

struct thread_registers *anchor_thread_registers; // keeps the type in BTF

static __always_inline void describe_call(struct thread_registers *thread, struct pt_regs *user)
{
	if (bpf_core_field_exists(user->orig_ax)) {
		thread->call = BPF_CORE_READ(user, orig_ax);
		thread->argument = BPF_CORE_READ(user, di);
	} else if (bpf_core_field_exists(user->syscallno)) {
		thread->call = BPF_CORE_READ(user, syscallno);
		thread->argument = BPF_CORE_READ(user, orig_x0);
	}
}

SEC("iter/task")
int list_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct thread_registers thread = {.call = -1};
	struct pt_regs *user;
	u32 tgid;

	if (!task)
		return 0;
	tgid = task->tgid;
	thread.tid = task->pid;
	if (pid_namespace_ino)
		numbers_of(task, &tgid, &thread.tid);
	if (tgid != wanted_tgid)
		return 0;
	thread.state = state_bits(task);
	if (thread.state & TASK_IS_DEAD)
		return 0; // the first thread stays until all others have ended
	thread.on_cpu = task->on_cpu != 0;
	thread.switches = switches_of(task);
	thread.pthread = thread_pointer(task);
	BPF_CORE_READ_STR_INTO(&thread.comm, task, comm);
	user = (void *)bpf_task_pt_regs(task); // Linux 5.15 (dd6e10fbd9fb)
	thread.has_registers = registers_at(user, &thread.registers);
	if (thread.has_registers)
		describe_call(&thread, user);
	bpf_seq_write(ctx->meta->seq, &thread, sizeof(thread));
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
