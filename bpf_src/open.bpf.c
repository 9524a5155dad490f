// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Files as they are opened: a record for each call of open(2), creat(2), openat(2) and openat2(2).
#include "calls.h"
#include "descriptors.h"
#include "events.h"
#include "path.h"

#define AT_FDCWD -100
#define O_CREAT_WRONLY_TRUNC 01101 // what creat(2) is short for, but on alpha, mips, parisc, sparc

CONFIG bool only_failed = false;
CONFIG u32 only_errno = 0; // only calls that failed with it

#define UNKNOWN_NS (~0ULL) // only the return was seen

enum kind {
	OPENED = 0,
};

// Behind it: the path that was given, with its NUL; where that is relative, the names of the
// directory it is relative to, the innermost first.
struct opened {
	struct event event;
	u64 duration_ns; // or UNKNOWN_NS
	u64 flags;
	s32 result; // a file descriptor, or minus an errno
	s32 dirfd;
	u32 path_size; // 0: the path could not be read
	u32 names_size;
	u8 names_whole; // 0: the directory is not known up to the root
	u8 pad[7];
};

struct opened *anchor_opened; // keeps the type in BTF

struct losses {
	u64 calls_full;		 // calls that found no place
	u64 paths_unreadable;	 // calls with a path that is not in memory (EFAULT)
	u64 directories_unknown; // relative paths of which the directory is not known
	u64 outside_namespace;	 // calls of tasks without a number in our pid namespace
};

struct losses losses = {};

#define COUNT(field) __sync_fetch_and_add(&losses.field, 1)

struct draft {
	struct way_up way;
	struct opened record;
	char text[2 * PATH_ROOM + NAME_ROOM];
};

// Records under construction, one for each program: the kernel does not run a program while it
// runs on the CPU already.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, struct draft);
} drafts SEC(".maps");

enum variant {
	OPENAT = 0,
	OPENAT2 = 1,
	OPEN = 2,
	CREAT = 3,
};

// What the arguments of each of the calls mean.
static __always_inline void read_variant(struct call *call, u64 *arguments, enum variant variant)
{
	bool has_directory = variant == OPENAT || variant == OPENAT2;

	call->dirfd = has_directory ? arguments[0] : AT_FDCWD;
	call->path = arguments[has_directory];
	if (variant == CREAT)
		call->flags = O_CREAT_WRONLY_TRUNC;
	else if (variant == OPENAT2) // the first member of struct open_how
		bpf_probe_read_user(&call->flags, sizeof(call->flags), (void *)arguments[2]);
	else
		call->flags = (u32)arguments[1 + has_directory];
}

static __always_inline void begin_open(struct call_start *ctx, enum variant variant)
{
	// the verifier takes constant offsets into the context only
	u64 arguments[3] = {ctx->arguments[0], ctx->arguments[1]};
	struct call call = {};

	if (!own_task_wanted(&call.tgid, &call.tid))
		return;
	if (variant != CREAT) // its record ends before
		arguments[2] = ctx->arguments[2];
	read_variant(&call, arguments, variant);
	if (!begin_call(&call))
		COUNT(calls_full);
}

// The call that the current task returns from.
static __always_inline bool take_open(struct call *call, enum variant variant)
{
	u64 arguments[6];

	if (end_call(call))
		return true;
	if (!own_task_wanted(&call->tgid, &call->tid) || !unseen_arguments(arguments))
		return false;
	read_variant(call, arguments, variant);
	return true;
}

// The directory that a descriptor of the current task is open on. False: it is open on nothing.
static __always_inline bool directory_of(s32 dirfd, struct way_up *way)
{
	struct file *file = file_at(dirfd);

	if (!file)
		return false;
	begin_way(way, __builtin_preserve_access_index(&file->f_path));
	return true;
}

// The names of the directory that a path is relative to.
static __always_inline void read_directory(struct way_up *way, s32 dirfd, char *names)
{
	struct task_struct___paths *task = (void *)bpf_get_current_task();

	if (dirfd == AT_FDCWD) {
		struct fs_struct *fs = BPF_CORE_READ(task, fs);

		begin_way(way, __builtin_preserve_access_index(&fs->pwd));
	} else if (!directory_of(dirfd, way)) {
		return;
	}
	climb(way, names);
}

static __always_inline bool result_wanted(s64 result)
{
	if (only_failed && result >= 0)
		return false;
	return !only_errno || -result == only_errno;
}

static __always_inline void end_open(s64 result, enum variant variant)
{
	u64 now = bpf_ktime_get_ns();
	u32 slot = variant;
	struct draft *draft;
	struct opened *record;
	struct call call = {};
	u32 used;

	if (!take_open(&call, variant) || !result_wanted(result))
		return;
	draft = bpf_map_lookup_elem(&drafts, &slot);
	if (!draft)
		return; // not so
	record = &draft->record;
	begin_event(&record->event, OPENED, call.tgid, call.tid);
	if (!call.tgid)
		COUNT(outside_namespace);
	record->duration_ns = call.start_ns ? now - call.start_ns : UNKNOWN_NS;
	record->flags = call.flags;
	record->result = result;
	record->dirfd = call.dirfd;
	draft->way.used = 0;
	draft->way.whole = false;
	// read now, when the kernel has brought the page in: at the start it may not be in memory
	used = read_given_path(draft->text, call.path);
	OPAQUE(used);
	if (used > PATH_ROOM)
		return;
	record->path_size = used;
	if (!used) {
		COUNT(paths_unreadable);
	} else if (used > 1 && draft->text[0] != '/') {
		read_directory(&draft->way, call.dirfd, draft->text + used);
		if (!draft->way.whole)
			COUNT(directories_unknown);
	}
	record->names_size = draft->way.used;
	record->names_whole = draft->way.whole;
	used += record->names_size;
	OPAQUE(used);
	if (used > sizeof(draft->text))
		return;
	send_event(record, sizeof(*record) + used);
}

SEC("tracepoint/syscalls/sys_enter_openat")
int enter_openat(struct call_start *ctx)
{
	begin_open(ctx, OPENAT);
	return SEEN_BY_PERF;
}

SEC("tracepoint/syscalls/sys_exit_openat")
int exit_openat(struct call_end *ctx)
{
	end_open(ctx->result, OPENAT);
	return SEEN_BY_PERF;
}

SEC("tracepoint/syscalls/sys_enter_openat2")
int enter_openat2(struct call_start *ctx)
{
	begin_open(ctx, OPENAT2);
	return SEEN_BY_PERF;
}

SEC("tracepoint/syscalls/sys_exit_openat2")
int exit_openat2(struct call_end *ctx)
{
	end_open(ctx->result, OPENAT2);
	return SEEN_BY_PERF;
}

SEC("?tracepoint/syscalls/sys_enter_open")
int enter_open(struct call_start *ctx)
{
	begin_open(ctx, OPEN);
	return SEEN_BY_PERF;
}

SEC("?tracepoint/syscalls/sys_exit_open")
int exit_open(struct call_end *ctx)
{
	end_open(ctx->result, OPEN);
	return SEEN_BY_PERF;
}

SEC("?tracepoint/syscalls/sys_enter_creat")
int enter_creat(struct call_start *ctx)
{
	begin_open(ctx, CREAT);
	return SEEN_BY_PERF;
}

SEC("?tracepoint/syscalls/sys_exit_creat")
int exit_creat(struct call_end *ctx)
{
	end_open(ctx->result, CREAT);
	return SEEN_BY_PERF;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
