// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Sample filter for users who may not load programs: root pins it, they fill in its table.
//
// The table is a decision graph: each entry compares a field with a number and says which entry
// comes next, or the verdict. It is written by the user, so nothing here trusts it: an entry
// outside the table or a circle ends in a drop, and a field that the event did not ask for is 0,
// not what the kernel's memory happens to hold.
#include "purebpf.h"
#include <linux/bpf_perf_event.h>
#include <linux/perf_event.h>
#include <bpf/bpf_core_read.h>

#define ENTRIES 128
#define VERDICT 0x8000	     // in `yes` and `no`: no entry but the end; what is left is the counter
#define BROKEN (ENTRIES + 1) // the counter of samples that got no verdict

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct perf_sample_data {
	u64 sample_flags;
	u64 period;
	struct {
		u32 pid;
		u32 tid;
	} tid_entry;
	u64 time;
	u64 id;
	struct {
		u32 cpu;
	} cpu_entry;
	u64 ip;
	union {
		u64 full;
	} weight;
	union {
		u64 val;
	} data_src;
	u64 txn;
	u64 cgroup;
	u64 addr;
	u64 phys_addr;
	u64 data_page_size;
	u64 code_page_size;
};

struct bpf_perf_event_data_kern {
	struct perf_sample_data *data;
};

struct bpf_perf_event_data___x86 {
	struct {
		unsigned long ip;
	} regs;
};
#pragma clang attribute pop

// What an entry asks about; purebpf/filter/decision_table.py has the same list.
enum filter_field {
	FIELD_IP,
	FIELD_TID,
	FIELD_PID,
	FIELD_TIME,
	FIELD_ADDR,
	FIELD_ID,
	FIELD_CPU,
	FIELD_PERIOD,
	FIELD_WEIGHT,
	FIELD_DATA_SRC,
	FIELD_SNOOP, // both parts of mem_snoop, which are not neighbours
	FIELD_TXN,
	FIELD_PHYS_ADDR,
	FIELD_CGROUP,
	FIELD_DATA_PGSZ,
	FIELD_CODE_PGSZ,
	FIELD_UID,
	FIELD_GID,
	FIELD_COMM_HEAD,
	FIELD_COMM_TAIL,
	FIELD_ANCESTOR, // the cgroup's id `level` below the root
};

enum filter_operator {
	OPERATOR_EQ,
	OPERATOR_NE,
	OPERATOR_GT,
	OPERATOR_GE,
	OPERATOR_LT,
	OPERATOR_LE,
	OPERATOR_AND,
};

struct entry {
	u64 value;
	u64 mask; // of the field, once it is shifted
	u8 field;
	u8 operator;
	u8 shift;
	u8 level;
	__u16 yes;
	__u16 no;
};

struct table {
	struct entry entries[ENTRIES];
};

CONFIG bool has_ancestors = true; // bpf_get_current_ancestor_cgroup_id, which 5.10 lacks

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct table);
} table SEC(".maps");

// 0: kept; n: the nth term was the first to reject; BROKEN: no verdict.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ENTRIES + 2);
	__type(key, u32);
	__type(value, u64);
} counts SEC(".maps");

// Who uses the table: no business of the program's, but what root can show of it.
struct lease {
	u64 start_time; // of the process, in clock ticks after boot
	u32 pid;
	u32 terms; // of its filter
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct lease);
} lease SEC(".maps");

// Keep both enums in the object's types, for a test to compare.
enum filter_field anchor_field = FIELD_IP;
enum filter_operator anchor_operator = OPERATOR_EQ;

extern void *bpf_cast_to_kern_ctx(void *context) __ksym;

struct comm {
	u64 head;
	u64 tail;
};

// Returns a field that needs no sample; *known is false for other fields.
static __always_inline u64 of_thread(const struct entry *entry, bool *known)
{
	struct comm comm = {};

	*known = true;
	switch (entry->field) {
	case FIELD_UID:
		return (u32)bpf_get_current_uid_gid();
	case FIELD_GID:
		return bpf_get_current_uid_gid() >> 32;
	case FIELD_COMM_HEAD:
		bpf_get_current_comm(&comm, sizeof(comm));
		return comm.head;
	case FIELD_COMM_TAIL:
		bpf_get_current_comm(&comm, sizeof(comm));
		return comm.tail;
	case FIELD_ANCESTOR:
		return has_ancestors ? bpf_get_current_ancestor_cgroup_id(entry->level) : 0;
	}
	*known = false;
	return 0;
}

#define IF_SAMPLED(bit, value) (data->sample_flags & (bit) ? (value) : 0)

static __always_inline u64 of_sample(struct perf_sample_data *data, const struct entry *entry)
{
	u64 source;

	switch (entry->field) {
	case FIELD_IP:
		return IF_SAMPLED(PERF_SAMPLE_IP, data->ip);
	case FIELD_TID:
		return IF_SAMPLED(PERF_SAMPLE_TID, data->tid_entry.tid);
	case FIELD_PID:
		return IF_SAMPLED(PERF_SAMPLE_TID, data->tid_entry.pid);
	case FIELD_TIME:
		return IF_SAMPLED(PERF_SAMPLE_TIME, data->time);
	case FIELD_ADDR:
		return IF_SAMPLED(PERF_SAMPLE_ADDR, data->addr);
	case FIELD_ID:
		return IF_SAMPLED(PERF_SAMPLE_ID | PERF_SAMPLE_IDENTIFIER, data->id);
	case FIELD_CPU:
		return IF_SAMPLED(PERF_SAMPLE_CPU, data->cpu_entry.cpu);
	case FIELD_PERIOD:
		return IF_SAMPLED(PERF_SAMPLE_PERIOD, data->period);
	case FIELD_WEIGHT:
		return IF_SAMPLED(PERF_SAMPLE_WEIGHT_TYPE, data->weight.full);
	case FIELD_DATA_SRC:
		return IF_SAMPLED(PERF_SAMPLE_DATA_SRC, data->data_src.val);
	case FIELD_SNOOP:
		source = IF_SAMPLED(PERF_SAMPLE_DATA_SRC, data->data_src.val);
		return (source >> 19 & 0x1f) | (source >> 38 & 3) << 5;
	case FIELD_TXN:
		return IF_SAMPLED(PERF_SAMPLE_TRANSACTION, data->txn);
	case FIELD_PHYS_ADDR:
		return IF_SAMPLED(PERF_SAMPLE_PHYS_ADDR, data->phys_addr);
	case FIELD_CGROUP:
		return IF_SAMPLED(PERF_SAMPLE_CGROUP, data->cgroup);
	case FIELD_DATA_PGSZ:
		return IF_SAMPLED(PERF_SAMPLE_DATA_PAGE_SIZE, data->data_page_size);
	case FIELD_CODE_PGSZ:
		return IF_SAMPLED(PERF_SAMPLE_CODE_PAGE_SIZE, data->code_page_size);
	}
	return 0;
}

static __always_inline bool holds(u8 operator, u64 found, u64 value)
{
	switch (operator) {
	case OPERATOR_EQ:
		return found == value;
	case OPERATOR_NE:
		return found != value;
	case OPERATOR_GT:
		return found > value;
	case OPERATOR_GE:
		return found >= value;
	case OPERATOR_LT:
		return found < value;
	case OPERATOR_LE:
		return found <= value;
	case OPERATOR_AND:
		return (found & value) != 0;
	}
	return false;
}

// Counts the verdict; what the program returns.
static __always_inline int verdict(u32 at)
{
	u32 counter = at & VERDICT ? at & ~VERDICT : BROKEN;
	u64 *count;

	if (counter > BROKEN)
		counter = BROKEN;
	count = bpf_map_lookup_elem(&counts, &counter);
	if (count)
		*count += 1;
	return counter == 0;
}

// Returns a field from the context and helpers, on older kernels.
static __always_inline u64 of_context(struct bpf_perf_event_data *ctx, u8 field)
{
	struct bpf_perf_event_data___x86 *x86 = (void *)ctx;

	switch (field) {
	case FIELD_IP:
		return bpf_core_field_exists(x86->regs.ip) ? x86->regs.ip : 0;
	case FIELD_TID:
		return (u32)bpf_get_current_pid_tgid();
	case FIELD_PID:
		return bpf_get_current_pid_tgid() >> 32;
	case FIELD_ADDR:
		return ctx->addr;
	case FIELD_CPU:
		return bpf_get_smp_processor_id();
	case FIELD_PERIOD:
		return ctx->sample_period;
	case FIELD_CGROUP:
		return bpf_get_current_cgroup_id();
	}
	return 0;
}

// Follows the graph to its verdict. `data` is the sample, or NULL on kernels where it is not ready.
static __always_inline int follow(struct bpf_perf_event_data *ctx, struct perf_sample_data *data,
				  bool is_ready)
{
	u32 key = 0, at = 0;
	struct table *graph = bpf_map_lookup_elem(&table, &key);

	if (!graph)
		return 0;
	for (int turn = 0; turn < ENTRIES && at < ENTRIES; turn++) {
		const struct entry *entry = &graph->entries[at];
		bool known;
		u64 value = of_thread(entry, &known);

		if (!known)
			value = is_ready ? of_sample(data, entry) : of_context(ctx, entry->field);
		value = value >> (entry->shift & 63) & entry->mask;
		at = holds(entry->operator, value, entry->value) ? entry->yes : entry->no;
	}
	return verdict(at);
}

// A sample that is ready before the program runs (Linux 6.3, commit 0eed28220598).
SEC("?perf_event")
int filter_sample(struct bpf_perf_event_data *ctx)
{
	struct bpf_perf_event_data_kern *kernel = bpf_cast_to_kern_ctx(ctx);

	return follow(ctx, kernel->data, true);
}

SEC("?perf_event")
int filter_registers(struct bpf_perf_event_data *ctx)
{
	return follow(ctx, NULL, false);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
