// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The threads of one process: state, and the user registers that each entered the kernel with.
// x86_64 only.
#include "pid_namespace.h"
#include "user_registers.h"

CONFIG u32 wanted_tgid = 0; // in the namespace that tasks are numbered in

struct thread_struct {
	unsigned long fsbase;
} __attribute__((preserve_access_index));

struct task_struct___switches {
	unsigned long nvcsw;
	unsigned long nivcsw;
	struct thread_struct thread;
} __attribute__((preserve_access_index));

struct thread_registers {
	u32 tid;
	u32 state; // TASK_* bits; 0: runs, or waits for a CPU
	u32 on_cpu;
	u32 has_registers;
	u64 switches; // times that it left a CPU
	u64 fsbase;   // where its thread-specific data is
	struct registers registers;
	char comm[TASK_COMM_LEN];
};

struct thread_registers *anchor_thread_registers; // keeps the type in BTF

SEC("iter/task")
int list_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct task_struct___switches *switches = (void *)task;
	struct thread_registers thread = {};
	u32 tgid;
	void *user;

	if (!task)
		return 0;
	tgid = task->tgid;
	thread.tid = task->pid;
	if (pid_namespace_ino)
		numbers_of(task, &tgid, &thread.tid);
	if (tgid != wanted_tgid)
		return 0;
	thread.state = state_bits(task);
	thread.on_cpu = task->on_cpu != 0;
	thread.switches = BPF_CORE_READ(switches, nvcsw) + BPF_CORE_READ(switches, nivcsw);
	thread.fsbase = BPF_CORE_READ(switches, thread.fsbase);
	BPF_CORE_READ_STR_INTO(&thread.comm, task, comm);
	// Linux 5.15 (dd6e10fbd9fb)
	user = (void *)bpf_task_pt_regs(task);
	thread.has_registers = user && !bpf_probe_read_kernel(&thread.registers,
							      sizeof(thread.registers), user);
	bpf_seq_write(ctx->meta->seq, &thread, sizeof(thread));
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
