// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Each sample with its user stack, walked without frame pointers. What cannot be walked to its end
// goes to user space as a copy: user registers, and the top of the stack, which the kernel appends
// as the event in `copies` asks for it (PERF_SAMPLE_STACK_USER). x86_64 only.
#include "copy_budget.h"
#include "pid_namespace.h"
#include "targets.h"
#include "unwind_walk.h"

CONFIG bool copies_all = false; // copy each sample, however its walk ended: to compare both

// The same as of stack_copy.bpf.c.
struct stack_copy {
	u64 time_ns; // CLOCK_MONOTONIC
	u32 cpu;
	u32 tgid;
	u32 tid;
	u32 is_compat; // a 32-bit task
	struct registers registers;
	char comm[TASK_COMM_LEN];
};

struct stack_walk {
	struct stack_copy sample;
	u64 identity; // see process_identity()
	u32 process;  // tgid in the initial pid namespace
	__u16 reason; // enum walk_reason
	u8 depth;
	u8 guessed; // steps by frame pointer
	u64 frames[WALK_FRAMES]; // `depth` of them
};

struct stats {
	u64 seen;	       // the program ran
	u64 others;	       // of tasks that were not asked for
	u64 outside_namespace; // no pid in our pid namespace
	u64 no_registers;      // a task of the kernel, or its registers could not be read
	u64 walked;
	u64 frames;
	u64 walk_ns;
	u64 copied;	   // sent to `copies`
	u64 refused;	   // the budget of copies was spent; sent to `walked`
	u64 output_full;   // the ring of the CPU had no room: as above
	u64 output_none;   // the CPU has no ring, it came online later: as above
	u64 output_failed; // as above
	u64 sent;	   // sent to `walked`
	u64 lost;	   // `walked` had no room
	u64 ends[WALK_REASONS]; // walks, by reason
};

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} copies SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} walked SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stack_walk);
} records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stats);
} stats SEC(".maps");

struct stack_walk *copies_record; // the type of what `copies` and `walked` carry

static __always_inline u64 record_size(u32 depth)
{
	OPAQUE(depth);
	if (depth > WALK_FRAMES)
		depth = WALK_FRAMES;
	return __builtin_offsetof(struct stack_walk, frames) + depth * sizeof(u64);
}

// True: user space has it. False: why not is the record's reason.
static __always_inline bool copy(void *ctx, struct stack_walk *record, struct stats *st)
{
	bool is_needed = copy_helps(record->reason);
	long err;

	if (!may_copy(record->sample.time_ns)) {
		if (is_needed)
			record->reason = WALK_COPY_REFUSED;
		st->refused++;
		return false;
	}
	err = bpf_perf_event_output(ctx, &copies, BPF_F_CURRENT_CPU, record,
				    record_size(record->depth));
	if (!err) {
		st->copied++;
		return true;
	}
	if (is_needed)
		record->reason = WALK_COPY_LOST;
	if (err == -ENOSPC)
		st->output_full++;
	else if (err == -ENOENT)
		st->output_none++;
	else
		st->output_failed++;
	return false;
}

static __always_inline void send(void *ctx, struct stack_walk *record, struct walk *walk,
				 struct stats *st)
{
	u32 reason = walk->reason;

	record->reason = reason;
	record->depth = walk->depth;
	record->guessed = walk->guessed;
	__builtin_memcpy(record->frames, walk->frames, sizeof(record->frames));
	if (reason < WALK_REASONS)
		st->ends[reason]++;
	if ((copies_all || copy_helps(reason)) && copy(ctx, record, st))
		return;
	if (bpf_ringbuf_output(&walked, record, record_size(record->depth), 0))
		st->lost++;
	else
		st->sent++;
}

static __always_inline int walk_sample(struct registers *ctx, bool typed)
{
	u64 now_ns = bpf_ktime_get_ns(), both = bpf_get_current_pid_tgid();
	u32 zero = 0;
	struct stack_walk *record = bpf_map_lookup_elem(&records, &zero);
	struct stats *st = bpf_map_lookup_elem(&stats, &zero);
	struct walk *walk = bpf_map_lookup_elem(&walks, &zero);
	struct stack_copy sample = {};

	if (!st || !record || !walk)
		return 0;
	st->seen++;
	if (!own_numbers(both, typed, &sample.tgid, &sample.tid)) {
		st->outside_namespace++;
		return 0;
	}
	if (!both || !listed(sample.tgid, sample.tid) || !in_cgroup()) {
		st->others++;
		return 0;
	}
	if (!user_registers(ctx, &sample.registers)) {
		st->no_registers++;
		return 0;
	}
	sample.time_ns = now_ns;
	sample.cpu = bpf_get_smp_processor_id();
	sample.is_compat = sample.registers.cs != USER_CS;
	bpf_get_current_comm(sample.comm, sizeof(sample.comm));
	record->sample = sample;
	record->identity = process_identity();
	record->process = both >> 32;
	walk_stack(walk, 0, &sample.registers, record->process, record->identity);
	st->walked++;
	st->frames += walk->depth;
	st->walk_ns += bpf_ktime_get_ns() - now_ns;
	send(ctx, record, walk, st);
	return 0;
}

SEC("perf_event")
int walk_sampled(struct registers *ctx)
{
	return walk_sample(ctx, false);
}

// The same, from within a pid namespace: needs the kernel's BTF.
SEC("?perf_event")
int walk_sampled_typed(struct registers *ctx)
{
	return walk_sample(ctx, true);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
