// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Page faults by thread, process or cgroup, and by the function and mapping that they are of.
//
// The kernel counts a fault for the software event in the same place where it counts it for
// getrusage(2) (mm/memory.c: mm_account_fault), one event for each.
#include "comm.h"
#include "cpus.h"
#include "map_entry.h"
#include "names.h"
#include "pid_namespace.h"
#include "targets.h"

#define FILE_ROOM 32

enum fault_kind {
	MINOR = 0,
	MAJOR = 1,
};

enum area {
	AREA_UNKNOWN = 0, // another thread changes the mappings, or Linux is older than 5.17
	AREA_FILE = 1,
	AREA_ANONYMOUS = 2,
	AREA_HEAP = 3,
	AREA_STACK = 4,
};

enum grouping {
	BY_TOTAL = 0,
	BY_THREAD = 1,
	BY_PROCESS = 2,
	BY_CGROUP = 3,
};

CONFIG u32 grouping = BY_TOTAL;
CONFIG u32 own_tgid = 0;	 // who is asking: left out
CONFIG bool with_places = false; // x86_64
CONFIG bool has_find_vma = true; // bpf_find_vma() is there (Linux 5.17, commit 7c7e3d31e785)

struct fault_key {
	u64 group; // as in bpf_src/summary.bpf.c
	u32 kind;
	u32 pad;
};

struct place_key {
	u64 group;
	u64 ip; // of user space: where the task was, or from where it called the kernel
	u32 tgid;
	u8 kind;
	u8 area;
	u8 pad[2];
	char file[FILE_ROOM]; // of AREA_FILE, the last part of its path
};

struct stats {
	u64 seen; // of the whole machine
	u64 rows_full;
	u64 places_full;
	u64 names_full;
	u64 outside_namespace;
};

struct stats stats = {};

#define COUNT(field) __sync_fetch_and_add(&stats.field, 1)

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, struct fault_key);
	__type(value, u64);
} faults SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct place_key);
	__type(value, u64);
} places SEC(".maps");

// The context of a perf_event program on x86_64: struct pt_regs, the period, the address.
struct fault_context {
	u64 registers[21];
	u64 period;
	u64 address;
};

struct pt_regs {
	unsigned long ip; // x86
	unsigned long pc; // arm64
} __attribute__((preserve_access_index));

struct qstr {
	const unsigned char *name;
} __attribute__((preserve_access_index));

struct dentry {
	struct qstr d_name;
} __attribute__((preserve_access_index));

struct path {
	struct dentry *dentry;
} __attribute__((preserve_access_index));

struct file {
	struct path f_path;
} __attribute__((preserve_access_index));

struct mm_struct {
	unsigned long start_brk, brk, start_stack;
} __attribute__((preserve_access_index));

struct vm_area_struct {
	unsigned long vm_start, vm_end;
	struct mm_struct *vm_mm;
	struct file *vm_file;
} __attribute__((preserve_access_index));

static long look_at_area(struct task_struct *task, struct vm_area_struct *area,
			 struct place_key *place)
{
	struct file *file = area->vm_file;
	struct mm_struct *mm = area->vm_mm;
	unsigned long stack = BPF_CORE_READ(mm, start_stack);

	if (file) {
		const unsigned char *name = BPF_CORE_READ(file, f_path.dentry, d_name.name);

		place->area = AREA_FILE;
		bpf_probe_read_kernel_str(place->file, sizeof(place->file), name);
	} else if (area->vm_start <= stack && stack <= area->vm_end) {
		place->area = AREA_STACK;
	} else if (area->vm_start <= BPF_CORE_READ(mm, brk) &&
		   area->vm_end >= BPF_CORE_READ(mm, start_brk)) {
		place->area = AREA_HEAP;
	} else {
		place->area = AREA_ANONYMOUS;
	}
	return 0;
}

static __always_inline u64 user_address_here(void)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());

	if (bpf_core_field_exists(regs->ip))
		return BPF_CORE_READ(regs, ip);
	return BPF_CORE_READ(regs, pc);
}

static __always_inline void add(void *map, void *key, u64 *full)
{
	u64 zero = 0, *count = find_or_add(map, key, &zero);

	__sync_fetch_and_add(count ? count : full, 1);
}

// As join_group() of bpf_src/summary/decide.h makes it.
static __always_inline u64 group_of(u32 tgid, u32 tid)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u64 group;

	if (grouping == BY_TOTAL)
		return 0;
	if (grouping == BY_CGROUP)
		return bpf_get_current_cgroup_id();
	if (grouping == BY_PROCESS)
		task = BPF_CORE_READ(task, group_leader);
	group = BPF_CORE_READ(task, start_time) >> 20 << 32;
	group |= grouping == BY_THREAD ? tid : tgid;
	if (!keep_name(group, grouping == BY_THREAD || tgid == tid ? BPF_ANY : BPF_NOEXIST))
		COUNT(names_full);
	return group;
}

static __always_inline int fault(struct fault_context *ctx, u32 kind)
{
	struct fault_key key = {.kind = kind};
	struct place_key place = {};
	u32 tgid, tid;

	COUNT(seen);
	if (!own_numbers(bpf_get_current_pid_tgid(), true, &tgid, &tid))
		COUNT(outside_namespace);
	if ((own_tgid && tgid == own_tgid) || !listed(tgid, tid) ||
	    !cpu_wanted(bpf_get_smp_processor_id()) || !in_scope())
		return 0;
	key.group = group_of(tgid, tid);
	add(&faults, &key, &stats.rows_full);
	if (!with_places)
		return 0;
	place.group = key.group;
	place.tgid = tgid;
	place.kind = kind;
	place.ip = user_address_here();
	if (has_find_vma)
		bpf_find_vma(bpf_get_current_task_btf(), ctx->address, look_at_area, &place, 0);
	add(&places, &place, &stats.places_full);
	return 0;
}

SEC("?perf_event")
int on_minor_fault(struct fault_context *ctx)
{
	return fault(ctx, MINOR);
}

SEC("?perf_event")
int on_major_fault(struct fault_context *ctx)
{
	return fault(ctx, MAJOR);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
