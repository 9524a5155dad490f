// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The reason of each wait without its stack: the system call, its first argument, the other end of
// its descriptor, the owner of its lock, and who ended it. Beside that, calls with their errors,
// connections, starts and ends of programs and signals, each by process.
//
// A switch costs 0.4 us here, a call 0.25 us (x86_64, 2.6 GHz). User space thins calls out where
// there are more than a hundred thousand a second.
#include "pid_namespace.h"
#include "process_end.h"
#include "sched_switch.h"
#include "user_registers.h"
#include "waits/endpoint.h"
#include "waits/maps.h"

enum call_kind { // bits: what the program has to know of a system call
	CALL_FUTEX = 1,
	CALL_POLL = 2,	    // its first argument is an array of struct pollfd
	CALL_TIMED = 4,	    // its arguments are times
	CALL_BYTES = 8,	    // it returns a number of bytes
	CALL_PATH = 16,	    // a path is its first argument
	CALL_PATH_AT = 32,  // its second
	CALL_FD = 64,	    // a descriptor is its first argument
	CALL_ADDRESS = 128, // a socket's address is its second
};

#define CALLS 512
#define STATE_CLOSE 7
#define STATE_SYN_SENT 2
#define IPPROTO_TCP 6
#define ONE_OF_PATHS 8
#define AF_UNIX 1
#define MAX_ERRNO 4095

CONFIG u32 own_tgid = 0;	  // a process that is left out, in the initial pid namespace
CONFIG u64 endpoint_ns = 500000;  // waits from this on get their other end and their waker
CONFIG u8 call_kinds[CALLS] = {}; // enum call_kind by number

u32 is_on = 0;
u32 thinned = 0; // count only one of 1 << thinned calls, with that weight

struct task_state {
	u64 since_ns;
	u64 argument;
	u32 call;
	u32 owner;
	s32 fd;
	u32 waker_tgid;
	u32 waker_tid;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_state);
} tasks SEC(".maps");

struct pollfd {
	s32 fd;
	short events;
	short revents;
};

static __always_inline u32 kinds_of(u32 call)
{
	return call < CALLS ? call_kinds[call & (CALLS - 1)] : 0;
}

static __always_inline bool is_wanted(struct task_struct *task)
{
	return is_on && task->pid && !(task->flags & PF_KTHREAD) && task->tgid != own_tgid;
}

static __always_inline void number(struct task_struct *task, u32 *tgid, u32 *tid)
{
	if (!pid_namespace_ino || !numbers_of(task, tgid, tid)) {
		*tgid = task->tgid;
		*tid = task->pid;
	}
}

// The current task leaves its CPU for a wait.
static __always_inline void begin_wait(struct task_struct *task)
{
	struct task_state *state =
		bpf_task_storage_get(&tasks, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct registers registers = {};
	u32 kinds;

	if (!state)
		return;
	registers_at((void *)bpf_task_pt_regs(task), &registers);
	state->since_ns = bpf_ktime_get_ns();
	state->call = registers.orig_ax;
	state->argument = registers.di;
	state->owner = state->waker_tgid = state->waker_tid = 0;
	state->fd = -1;
	kinds = kinds_of(state->call);
	if (kinds & CALL_FUTEX) {
		u32 words[3] = {};

		bpf_probe_read_user(words, sizeof(words), (void *)registers.di);
		state->owner = words[2];
	} else if (kinds & CALL_POLL) {
		struct pollfd first = {};

		if (registers.si == 1 &&
		    !bpf_probe_read_user(&first, sizeof(first), (void *)registers.di))
			state->fd = first.fd;
	} else if (kinds & CALL_TIMED) {
		state->argument = 0;
	} else if (kinds & CALL_FD) {
		state->fd = registers.di;
	}
}

static __always_inline void count_waker(struct task_state *state, struct wait_key *wait, u64 ns)
{
	struct waker_key key = {
		.tid = wait->tid,
		.call = state->call,
		.waker_tgid = state->waker_tgid,
		.waker_tid = state->waker_tid,
	};
	struct wait_sum first = {.ns = ns, .count = 1, .longest_ns = ns};
	struct wait_sum *sum = bpf_map_lookup_elem(&wakers, &key);

	if (sum) {
		sum->ns += ns;
		sum->count++;
	} else if (bpf_map_update_elem(&wakers, &key, &first, BPF_ANY)) {
		COUNT_LOSS(wakers_full);
	}
}

// A task is back on a CPU.
static __always_inline void end_wait(struct task_struct *task)
{
	struct task_state *state = bpf_task_storage_get(&tasks, task, NULL, 0);
	struct wait_key key = {};
	struct wait_sum *sum, first = {};
	u64 ns;

	if (!state || !state->since_ns)
		return;
	ns = bpf_ktime_get_ns() - state->since_ns;
	state->since_ns = 0;
	number(task, &key.tgid, &key.tid);
	key.call = state->call;
	key.fd = state->fd;
	key.argument = state->argument;
	key.owner = state->owner;
	if (ns >= endpoint_ns && state->fd >= 0)
		describe_fd(task, state->fd, &key.endpoint);
	sum = bpf_map_lookup_elem(&waits, &key);
	if (sum) { // a task has one CPU: nobody else writes here
		sum->ns += ns;
		sum->count++;
		if (ns > sum->longest_ns)
			sum->longest_ns = ns;
	} else {
		first.ns = first.longest_ns = ns;
		first.count = 1;
		if (bpf_map_update_elem(&waits, &key, &first, BPF_ANY))
			COUNT_LOSS(waits_full);
	}
	if (ns >= endpoint_ns)
		count_waker(state, &key, ns);
}

SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
{
	struct task_struct *leaving = (void *)ctx[1], *coming = (void *)ctx[2];

	if (left_in(ctx) && !preempted(ctx) && is_wanted(leaving))
		begin_wait(leaving);
	if (is_wanted(coming))
		end_wait(coming);
	return 0;
}

SEC("tp_btf/sched_waking")
int on_waking(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct task_state *state;

	if (!is_wanted(task))
		return 0;
	state = bpf_task_storage_get(&tasks, task, NULL, 0);
	if (state && state->since_ns)
		number(bpf_get_current_task_btf(), &state->waker_tgid, &state->waker_tid);
	return 0;
}

static __always_inline void count_path(struct registers *registers, u32 tgid, u32 call, u32 kinds)
{
	struct path_key key = {.tgid = tgid, .call = call};
	u64 at = kinds & CALL_PATH ? registers->di : registers->si;

	bpf_probe_read_user_str(key.path, sizeof(key.path), (void *)at);
	ADD_ONE(&paths, &key, ONE_OF_PATHS);
}

// The path of a unix socket to which no connection could be made.
static __always_inline void count_address(struct registers *registers, u32 tgid, u32 call)
{
	struct path_key key = {.tgid = tgid, .call = call};
	u16 family = 0;

	bpf_probe_read_user(&family, sizeof(family), (void *)registers->si);
	if (family != AF_UNIX)
		return;
	bpf_probe_read_user_str(key.path, sizeof(key.path),
				(void *)(registers->si + sizeof(family)));
	ADD_ONE(&paths, &key, 1);
}

SEC("tp_btf/sys_exit")
int on_call_end(u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 kinds, tid, weight = 1 << thinned;
	struct call_sum *sum, first = {};
	struct registers registers = {};
	struct call_key key = {};
	s64 result = ctx[1];

	if (!is_wanted(task) || (thinned && bpf_get_prandom_u32() & (weight - 1)))
		return 0;
	if (!registers_at((void *)ctx[0], &registers))
		return 0;
	number(task, &key.tgid, &tid);
	key.call = registers.orig_ax;
	key.error = result < 0 && result >= -MAX_ERRNO ? -result : 0;
	kinds = kinds_of(key.call);
	sum = bpf_map_lookup_elem(&calls, &key);
	if (!sum) {
		if (bpf_map_update_elem(&calls, &key, &first, BPF_ANY))
			COUNT_LOSS(others_full);
		sum = bpf_map_lookup_elem(&calls, &key);
		if (!sum)
			return 0;
	}
	sum->count += weight;
	if (kinds & CALL_BYTES && result > 0) {
		sum->bytes += result * weight;
		sum->fd = registers.di;
	}
	if (kinds & (CALL_PATH | CALL_PATH_AT) && !(bpf_get_prandom_u32() & (ONE_OF_PATHS - 1)))
		count_path(&registers, key.tgid, key.call, kinds);
	if (kinds & CALL_ADDRESS && key.error)
		count_address(&registers, key.tgid, key.call);
	return 0;
}

// A connection that fails says so here, whether its process waits for it or not.
SEC("tp_btf/inet_sock_set_state")
int on_state(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	u32 old_state = ctx[1], new_state = ctx[2], tid, *tgid;
	struct connect_key key = {};
	u64 address = (u64)sk;

	if (!is_on || BPF_CORE_READ(sk, sk_protocol) != IPPROTO_TCP)
		return 0;
	if (new_state == STATE_SYN_SENT) { // in the task that calls connect(2)
		number(bpf_get_current_task_btf(), &key.tgid, &tid);
		bpf_map_update_elem(&connecting, &address, &key.tgid, BPF_ANY);
	} else if (old_state == STATE_SYN_SENT) {
		tgid = bpf_map_lookup_elem(&connecting, &address);
		if (!tgid)
			return 0;
		key.tgid = *tgid;
		bpf_map_delete_elem(&connecting, &address);
		if (new_state != STATE_CLOSE)
			return 0;
		key.error = BPF_CORE_READ(sk, sk_err);
		if (!key.error)
			return 0;
	} else {
		return 0;
	}
	describe_socket(sk, &key.endpoint);
	key.endpoint.local_port = 0; // another one each time
	ADD_ONE(&connects, &key, 1);
	return 0;
}

static __always_inline void describe_parent(struct task_struct *parent, u32 *tgid, char *comm)
{
	u32 tid;

	if (!pid_namespace_ino || !numbers_of(parent, tgid, &tid))
		*tgid = BPF_CORE_READ(parent, tgid);
	bpf_core_read_str(comm, TASK_COMM_LEN, &parent->comm);
}

SEC("tp_btf/sched_process_exec")
int on_exec(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0], *parent;
	struct start_key key = {};

	if (!is_on)
		return 0;
	parent = BPF_CORE_READ((struct task_struct___process *)task, real_parent);
	describe_parent(parent, &key.parent, key.parent_comm);
	BPF_CORE_READ_STR_INTO(&key.comm, task, comm);
	ADD_ONE(&starts, &key, 1);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int on_fork(u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	struct start_key key = {.is_fork = 1};
	u32 tid;

	if (!is_on || child->tgid != child->pid)
		return 0;
	number(parent, &key.parent, &tid);
	BPF_CORE_READ_STR_INTO(&key.parent_comm, parent, comm);
	ADD_ONE(&starts, &key, 1);
	return 0;
}

// A process ends with its last thread. What ends well is not counted.
SEC("tp_btf/sched_process_exit")
int on_exit(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0], *leader, *parent;
	struct end_key key = {};

	if (!is_on || !is_last_thread(task))
		return 0;
	leader = BPF_CORE_READ(task, group_leader);
	key.code = exit_code_of(leader);
	if (!key.code)
		return 0;
	parent = BPF_CORE_READ((struct task_struct___process *)leader, real_parent);
	describe_parent(parent, &key.parent, key.parent_comm);
	BPF_CORE_READ_STR_INTO(&key.comm, leader, comm);
	ADD_ONE(&ends, &key, 1);
	return 0;
}

SEC("tp_btf/signal_generate")
int on_signal(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[2];
	struct signal_key key = {.signal = ctx[0]};
	u32 tid;

	if (!is_wanted(task))
		return 0;
	number(task, &key.receiver, &tid);
	number(bpf_get_current_task_btf(), &key.sender, &tid);
	ADD_ONE(&signals, &key, 1);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
