// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Each sample with its user stack, walked without frame pointers. What cannot be walked to its end
// goes to user space as a copy: user registers, and the top of the stack, which the kernel appends
// as the event in `copies` asks for it (PERF_SAMPLE_STACK_USER).
#include "copied_sample.h"
#include "unwind_walk.h"

CONFIG bool copies_all = false; // copy each sample, however its walk ended: to compare both

struct stack_walk {
	struct stack_copy sample;
	u64 identity; // see process_identity()
	u64 pc;	      // where the walk ended
	u64 fp;
	u32 process;  // tgid in the initial pid namespace
	__u16 reason; // enum walk_reason
	u8 depth;
	u8 guessed;		 // steps by frame pointer
	u64 is_exact;		 // of `pc`
	u64 frames[WALK_FRAMES]; // `depth` of them
};

struct stats {
	u64 seen;	       // the program ran
	u64 others;	       // of tasks that were not asked for
	u64 outside_namespace; // no pid in our pid namespace
	u64 no_registers;      // it has no user stack, or its registers could not be read
	u64 walked;
	u64 frames;
	u64 walk_ns;
	u64 copied;		// sent to `copies`
	u64 refused;		// the budget of copies was spent; sent to `walked`
	u64 output_full;	// the ring of the CPU had no room: as above
	u64 output_none;	// the CPU has no ring, it came online later: as above
	u64 output_failed;	// as above
	u64 sent;		// sent to `walked`
	u64 lost;		// `walked` had no room
	u64 ends[WALK_REASONS]; // walks, by reason
};

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

	if (!may_copy(record->sample.time_ns)) {
		if (is_needed)
			record->reason = WALK_COPY_REFUSED;
		st->refused++;
		return false;
	}
	if (output_copy(ctx, record, record_size(record->depth), &st->copied, &st->output_full,
			&st->output_none, &st->output_failed))
		return true;
	if (is_needed)
		record->reason = WALK_COPY_LOST;
	return false;
}

static __always_inline void send(void *ctx, struct stack_walk *record, struct walk *walk,
				 struct stats *st)
{
	u32 reason = walk->reason;

	record->reason = reason;
	record->depth = walk->depth;
	record->guessed = walk->guessed;
	record->pc = walk->pc;
	record->fp = walk->is_fp_lost ? 0 : walk->fp;
	record->is_exact = walk->is_exact;
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
	u32 zero = 0;
	struct stack_walk *record = bpf_map_lookup_elem(&records, &zero);
	struct stats *st = bpf_map_lookup_elem(&stats, &zero);
	struct walk *walk = bpf_map_lookup_elem(&walks, &zero);
	struct stack_copy sample = {};

	if (!st || !record || !walk)
		return 0;
	st->seen++;
	if (!take_sample(ctx, typed, &sample, &st->others, &st->outside_namespace,
			 &st->no_registers))
		return 0;
	record->sample = sample;
	record->identity = process_identity();
	record->process = bpf_get_current_pid_tgid() >> 32;
	walk_stack(walk, 0, &sample.registers, record->process, record->identity);
	st->walked++;
	st->frames += walk->depth;
	st->walk_ns += bpf_ktime_get_ns() - sample.time_ns;
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
