// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Processes as they start programs and end: a record for each execve that succeeds or, if asked
// for, fails, and for the end of each process.
#include "calls.h"
#include "events.h"
#include "path.h"
#include "process_end.h"

#define ARGUMENTS_ROOM 16384

enum kind {
	EXECUTED = 0,
	ENDED = 1,
	REFUSED = 2,
	USED = 3,
};

struct mm_struct {
	unsigned long arg_start, arg_end;
} __attribute__((preserve_access_index));

struct linux_binprm {
	const char *filename;
	struct file *file;
} __attribute__((preserve_access_index));

struct sched_entity {
	u64 sum_exec_runtime;
} __attribute__((preserve_access_index));

struct task_struct___used {
	struct sched_entity se;
} __attribute__((preserve_access_index));

// Behind it: the arguments, each with its NUL; the path that was given; the names of the file that
// runs, the innermost first.
struct executed {
	struct event event;
	u64 arguments_asked; // bytes; more than there are where they were cut
	u32 ppid;
	u32 arguments_size;
	u32 path_size;
	u32 names_size;
	u8 names_whole;
	u8 pad[7];
};

struct ended {
	struct event event;
	u64 lifetime_ns; // since the fork
	u32 ppid;
	u32 code; // as wait(2) gives it
};

// Behind it: the path.
struct refused {
	struct event event;
	u32 ppid;
	u32 errno_value;
};

// The CPU time of a thread, after its last switch.
struct used {
	struct event event;
	u64 cpu_ns;
	u32 ppid;
	u32 pad;
};

struct executed *anchor_executed; // keep the types in BTF
struct ended *anchor_ended;
struct refused *anchor_refused;
struct used *anchor_used;

struct losses {
	u64 arguments_cut;	  // programs with more arguments than there is room for
	u64 arguments_unreadable; // programs with arguments that were not in memory
	u64 paths_cut;		  // files so deep that the names at the root are missing
	u64 dying_full;		  // threads that ended without a place for their CPU time
	u64 calls_full;		  // calls of execve that found no place
	u64 outside_namespace;	  // processes without a number in our pid namespace
};

struct losses losses = {};

#define COUNT(field) __sync_fetch_and_add(&losses.field, 1)

// Records under construction. Each has one writer at a time on a CPU: the kernel does not run a
// program while it runs there already.
struct executed_scratch {
	struct way_up way;
	struct executed record;
	char text[ARGUMENTS_ROOM + 2 * PATH_ROOM + NAME_ROOM];
};

struct refused_scratch {
	struct refused record;
	char path[PATH_ROOM];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct executed_scratch);
} executed_scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2); // execve, execveat
	__type(key, u32);
	__type(value, struct refused_scratch);
} refused_scratch SEC(".maps");

// Processes that have ended. Two threads that end at once both find none alive; the first one to
// enter the process here speaks for it.
struct end_key {
	u64 start_ns;
	u32 tgid;
	u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct end_key);
	__type(value, u8);
} ended_processes SEC(".maps");

static __always_inline u32 parent_of(struct task_struct *task)
{
	struct task_struct___process *process = (void *)task;
	struct task_struct *parent = BPF_CORE_READ(process, real_parent);
	u32 tgid, tid;

	if (!pid_namespace_ino)
		return BPF_CORE_READ(parent, tgid);
	numbers_of(parent, &tgid, &tid);
	return tgid;
}

static __always_inline bool process_wanted(u32 *tgid, u32 *tid)
{
	if (!own_task_wanted(tgid, tid))
		return false;
	if (!*tgid)
		COUNT(outside_namespace);
	return true;
}

static __always_inline void read_arguments(struct executed *record, char *text)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u64 start = BPF_CORE_READ(task, mm, arg_start);
	u64 size = BPF_CORE_READ(task, mm, arg_end) - start;

	record->arguments_asked = size;
	record->arguments_size = 0;
	if (size > ARGUMENTS_ROOM) {
		size = ARGUMENTS_ROOM;
		COUNT(arguments_cut);
	}
	OPAQUE(size);
	if (size > ARGUMENTS_ROOM)
		return;
	// the new program's memory is in place already, and its arguments were written just now
	if (bpf_probe_read_user(text, size, (void *)start))
		COUNT(arguments_unreadable);
	else
		record->arguments_size = size;
}

SEC("tp_btf/sched_process_exec")
int on_exec(u64 *ctx)
{
	struct linux_binprm *binprm = (void *)ctx[2];
	u32 zero = 0, tgid, tid, used, before = ctx[1];
	struct executed_scratch *scratch;
	struct file *file;
	long size;

	bpf_map_delete_elem(&calls, &before); // the call does not end in the thread that began it
	if (!process_wanted(&tgid, &tid))
		return 0;
	scratch = bpf_map_lookup_elem(&executed_scratch, &zero);
	if (!scratch)
		return 0; // not so: there is one
	begin_event(&scratch->record.event, EXECUTED, tgid, tid);
	scratch->record.ppid = parent_of((void *)ctx[0]);
	read_arguments(&scratch->record, scratch->text);
	used = scratch->record.arguments_size;
	OPAQUE(used);
	if (used > ARGUMENTS_ROOM)
		return 0;
	size = bpf_probe_read_kernel_str(scratch->text + used, PATH_ROOM, binprm->filename);
	scratch->record.path_size = size > 0 ? size : 0;
	used += scratch->record.path_size;
	OPAQUE(used);
	if (used > ARGUMENTS_ROOM + PATH_ROOM)
		return 0;
	file = binprm->file;
	begin_way(&scratch->way, __builtin_preserve_access_index(&file->f_path));
	climb(&scratch->way, scratch->text + used);
	scratch->record.names_size = scratch->way.used;
	scratch->record.names_whole = scratch->way.whole;
	if (!scratch->way.whole)
		COUNT(paths_cut);
	used += scratch->way.used;
	OPAQUE(used);
	if (used > sizeof(scratch->text))
		return 0;
	send_event(&scratch->record, sizeof(struct executed) + used);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int on_exit(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0], *leader = BPF_CORE_READ(task, group_leader);
	struct ended record = {};
	struct end_key key = {};
	u32 tgid, tid;
	u8 one = 1;

	if (!is_last_thread(task) || BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return 0;
	if (!process_wanted(&tgid, &tid))
		return 0;
	key.start_ns = BPF_CORE_READ(leader, start_time);
	key.tgid = BPF_CORE_READ(leader, tgid);
	if (bpf_map_update_elem(&ended_processes, &key, &one, BPF_NOEXIST))
		return 0;
	begin_event(&record.event, ENDED, tgid, tid);
	BPF_CORE_READ_STR_INTO(&record.event.comm, leader, comm);
	record.ppid = parent_of(leader);
	record.lifetime_ns = record.event.time_ns - key.start_ns;
	record.code = exit_code_of(leader);
	send_event(&record, sizeof(record));
	return 0;
}

// Threads that are ending, by their address: who they are, for their last switch. By then their
// process may have been forgotten as a target.
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct used);
} dying SEC(".maps");

SEC("?tp_btf/sched_process_exit")
int mark_thread(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct used record = {};
	u64 address = (u64)task;
	u32 tgid, tid;
	int err;

	if (BPF_CORE_READ(task, flags) & PF_KTHREAD || !own_task_wanted(&tgid, &tid))
		return 0;
	begin_event(&record.event, USED, tgid, tid);
	record.ppid = parent_of(task);
	err = bpf_map_update_elem(&dying, &address, &record, BPF_ANY);
	if (err)
		COUNT(dying_full);
	return 0;
}

#define TASK_DEAD 0x80 // include/linux/sched.h

// A thread leaves its CPU for the last time: the kernel has added up what it used.
SEC("?tp_btf/sched_switch")
int on_last_switch(u64 *ctx)
{
	struct task_struct___used *task = (void *)bpf_get_current_task();
	u64 address = (u64)task;
	struct used *record;

	if (!(state_bits((void *)task) & TASK_DEAD))
		return 0;
	record = bpf_map_lookup_elem(&dying, &address);
	if (!record)
		return 0;
	record->event.time_ns = bpf_ktime_get_ns();
	record->cpu_ns = BPF_CORE_READ(task, se.sum_exec_runtime);
	send_event(record, sizeof(*record));
	bpf_map_delete_elem(&dying, &address);
	return 0;
}

static __always_inline int begin_exec(u64 path)
{
	struct call call = {.path = path};

	if (!own_task_wanted(&call.tgid, &call.tid))
		return 0;
	if (!begin_call(&call))
		COUNT(calls_full);
	return 0;
}

// The call that the current task returns from, of which the argument `place` is the path.
static __always_inline bool take_exec(struct call *call, u32 place)
{
	u64 arguments[6];

	if (end_call(call))
		return true;
	if (!own_task_wanted(&call->tgid, &call->tid) || !unseen_arguments(arguments))
		return false;
	call->path = arguments[place];
	return true;
}

static __always_inline int end_exec(s64 result, u32 slot)
{
	struct refused_scratch *scratch;
	struct call call = {};
	u32 size;

	if (!take_exec(&call, slot) || result >= 0) // the path is the first argument, or the second
		return 0;
	scratch = bpf_map_lookup_elem(&refused_scratch, &slot);
	if (!scratch)
		return 0; // not so
	begin_event(&scratch->record.event, REFUSED, call.tgid, call.tid);
	scratch->record.ppid = parent_of((void *)bpf_get_current_task());
	scratch->record.errno_value = -result;
	size = read_given_path(scratch->path, call.path);
	OPAQUE(size);
	if (size > PATH_ROOM)
		return 0;
	send_event(scratch, sizeof(struct refused) + size);
	return 0;
}

SEC("?tracepoint/syscalls/sys_enter_execve")
int enter_execve(struct call_start *ctx)
{
	begin_exec(ctx->arguments[0]);
	return SEEN_BY_PERF;
}

SEC("?tracepoint/syscalls/sys_exit_execve")
int exit_execve(struct call_end *ctx)
{
	end_exec(ctx->result, 0);
	return SEEN_BY_PERF;
}

SEC("?tracepoint/syscalls/sys_enter_execveat")
int enter_execveat(struct call_start *ctx)
{
	begin_exec(ctx->arguments[1]);
	return SEEN_BY_PERF;
}

SEC("?tracepoint/syscalls/sys_exit_execveat")
int exit_execveat(struct call_end *ctx)
{
	end_exec(ctx->result, 1);
	return SEEN_BY_PERF;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
