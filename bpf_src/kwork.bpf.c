// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What the kernel does on its own: interrupts, softirqs, tasklets, work of queues, timers, calls from
// other CPUs. How long each runs, and how long it waits from when it is asked for.
//
// All but work begins and ends on one CPU and nests there as interrupts do. Work sleeps and moves: it
// is kept by the worker that runs it, and from when it is queued by its address, on any CPU.
#include "cpus.h"
#include "histogram.h"
#include "kwork/objects.h"
#include "map_entry.h"
#include "nesting.h"
#include "stacks.h"

enum kind {
	IRQ = 0,
	SOFTIRQ = 1,
	TASKLET = 2,
	WORK = 3,
	HRTIMER = 4,
	TIMER = 5,
	IPI = 6,
	KINDS = 7,
};

#define NAME_LENGTH 32
#define COMM_LENGTH 16
#define NO_DELAY (~0ULL)

struct row_key {
	u64 id; // an interrupt, a softirq, or the address of a function
	u64 stack;
	u32 kind;
	u32 cpu;
};

// Written by one CPU, and by one program there.
struct row {
	u64 count;
	u64 total_ns;
	u64 max_ns;
	u64 max_end_ns; // of CLOCK_MONOTONIC
	u64 delayed;	// those of which the beginning of the wait was seen
	u64 delay_ns;
	u64 max_delay_ns;
	u64 max_delay_end_ns;
	u64 buckets[BUCKETS];	    // of nanoseconds that it ran
	u64 delay_buckets[BUCKETS]; // of nanoseconds that it waited
	char name[NAME_LENGTH];	    // of an interrupt's handler
};

// A run, as it ended.
struct ended_run {
	u64 began_ns;
	u64 ended_ns;
	u64 delay_ns; // or NO_DELAY
	u64 id;
	u32 kind;
	u32 cpu;
	char name[NAME_LENGTH]; // of an interrupt's handler
};

// The process that a softirq interrupts: what it does may have raised it, a packet to this machine.
struct host_key {
	u32 softirq;
	u32 pid;
};

struct host {
	u64 total_ns;
	char comm[COMM_LENGTH];
};

struct losses {
	u64 runs_full;	  // runs that found no room in the ring
	u64 rows_full;	  // runs that found no row
	u64 working_full; // work of workers that found no place
	u64 nested;	  // runs that were nested too deep
	u64 ends_missed;  // runs of which the end was not seen
	u64 before;	  // runs that were under way when the measurement began
	u64 clock_backwards;
	u64 hosts_full; // runs of softirqs in processes that found no place
};

// A run that has begun.
struct run {
	u64 began_ns;
	u64 delay_ns; // NO_DELAY: not known
	u64 id;
	u64 object; // of work: the end names it, too
	u64 stack;
};

struct queued {
	u64 since_ns;
	u64 stack;
	u64 function; // of a call: its struct may be used for the next one before it begins
};

struct runs {
	struct nesting objects;
	struct run runs[DEPTH];
};

#define SOFTIRQS 16 // NR_SOFTIRQS is 10

struct cpu_state {
	u64 raised_ns[SOFTIRQS]; // when it was first raised since it last ran; 0: it was not
	struct runs runs[KINDS];
};

CONFIG bool with_stacks = false;
CONFIG bool with_runs = false; // each run is sent

struct losses losses = {};
struct row *anchor_row;
struct ended_run *anchor_ended_run;

#define COUNT(field) __sync_fetch_and_add(&losses.field, 1)

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu_state);
} cpu_states SEC(".maps");

// Work that is cancelled never runs: the oldest makes room.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64); // the address of a work_struct, or of a call
	__type(value, struct queued);
} waiting SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u32); // a worker, as the kernel numbers it
	__type(value, struct run);
} working SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct row_key);
	__type(value, struct row);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct host_key);
	__type(value, struct host);
} hosts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} ended_runs SEC(".maps");

static const struct row no_row;
static const struct host no_host;

static __always_inline struct cpu_state *own_state(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&cpu_states, &zero);
}

static __always_inline u64 since(u64 then_ns, u64 now_ns)
{
	if (now_ns >= then_ns)
		return now_ns - then_ns;
	COUNT(clock_backwards);
	return 0;
}

static __always_inline void send(struct run *run, u32 kind, u32 cpu, u64 now_ns, u64 handler)
{
	struct ended_run record = {
		.began_ns = run->began_ns,
		.ended_ns = now_ns,
		.delay_ns = run->delay_ns,
		.id = run->id,
		.kind = kind,
		.cpu = cpu,
	};

	if (kind == IRQ)
		read_handler_name((void *)handler, record.name, NAME_LENGTH);
	if (bpf_ringbuf_output(&ended_runs, &record, sizeof(record), 0))
		COUNT(runs_full);
}

// The idle task is no process.
static __always_inline void add_to_host(u32 softirq, u64 took_ns)
{
	struct host_key key = {.softirq = softirq, .pid = bpf_get_current_pid_tgid() >> 32};
	struct host *host;
	bool is_new;

	if (!key.pid)
		return;
	host = find_or_add_entry(&hosts, &key, &no_host, &is_new);
	if (!host) {
		COUNT(hosts_full);
		return;
	}
	if (is_new)
		bpf_get_current_comm(host->comm, sizeof(host->comm));
	__sync_fetch_and_add(&host->total_ns, took_ns);
}

static __noinline int add(struct run *run, u32 kind, u64 handler)
{
	struct row_key key = {.kind = kind, .cpu = bpf_get_smp_processor_id()};
	u64 now_ns = bpf_ktime_get_ns(), took_ns;
	struct row *row;
	bool is_new;

	if (!run || !cpu_wanted(key.cpu))
		return 0;
	key.id = run->id;
	key.stack = run->stack;
	took_ns = since(run->began_ns, now_ns);
	if (with_runs)
		send(run, kind, key.cpu, now_ns, handler);
	if (kind == SOFTIRQ)
		add_to_host(run->id, took_ns);
	row = find_or_add_entry(&rows, &key, &no_row, &is_new);
	if (!row) {
		COUNT(rows_full);
		return 0;
	}
	if (is_new && kind == IRQ)
		read_handler_name((void *)handler, row->name, NAME_LENGTH);
	row->count++;
	row->total_ns += took_ns;
	if (took_ns >= row->max_ns) {
		row->max_ns = took_ns;
		row->max_end_ns = now_ns;
	}
	add_to_buckets(row->buckets, took_ns);
	if (run->delay_ns == NO_DELAY)
		return 0;
	row->delayed++;
	row->delay_ns += run->delay_ns;
	if (run->delay_ns >= row->max_delay_ns) {
		row->max_delay_ns = run->delay_ns;
		row->max_delay_end_ns = run->began_ns;
	}
	add_to_buckets(row->delay_buckets, run->delay_ns);
	return 0;
}

static __always_inline void begin(struct cpu_state *state, u32 kind, u64 id, u64 object,
				  u64 delay_ns)
{
	struct runs *runs = &state->runs[kind];
	u32 place = next_place(&runs->objects, &losses.nested);
	struct run *run = &runs->runs[place];

	run->id = id;
	run->delay_ns = delay_ns;
	run->stack = 0;
	enter_object(&runs->objects, place, object);
	run->began_ns = bpf_ktime_get_ns();
}

static __always_inline void end(u32 kind, u64 object, u64 handler)
{
	struct cpu_state *state = own_state();
	struct runs *runs;
	u32 place;

	if (!state)
		return;
	runs = &state->runs[kind];
	place = leave_object(&runs->objects, object, &losses.ends_missed);
	OPAQUE(place);
	if (place < DEPTH) {
		add(&runs->runs[place], kind, handler);
		return;
	}
	// It began before the measurement, and so everything in it has ended.
	__sync_fetch_and_add(&losses.ends_missed, runs->objects.depth);
	runs->objects.depth = 0;
	COUNT(before);
}

SEC("tp_btf/irq_handler_entry")
int on_irq_entry(u64 *ctx)
{
	struct cpu_state *state = own_state();

	if (state)
		begin(state, IRQ, ctx[0], ctx[1], NO_DELAY);
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int on_irq_exit(u64 *ctx)
{
	end(IRQ, ctx[1], ctx[1]);
	return 0;
}

SEC("tp_btf/softirq_raise")
int on_softirq_raise(u64 *ctx)
{
	struct cpu_state *state = own_state();
	u32 number = ctx[0];

	if (state && !state->raised_ns[number & (SOFTIRQS - 1)])
		state->raised_ns[number & (SOFTIRQS - 1)] = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/softirq_entry")
int on_softirq_entry(u64 *ctx)
{
	struct cpu_state *state = own_state();
	u32 number = ctx[0];
	u64 raised_ns;

	if (!state)
		return 0;
	raised_ns = state->raised_ns[number & (SOFTIRQS - 1)];
	state->raised_ns[number & (SOFTIRQS - 1)] = 0;
	begin(state, SOFTIRQ, number, number,
	      raised_ns ? since(raised_ns, bpf_ktime_get_ns()) : NO_DELAY);
	return 0;
}

SEC("tp_btf/softirq_exit")
int on_softirq_exit(u64 *ctx)
{
	end(SOFTIRQ, (u32)ctx[0], 0);
	return 0;
}

SEC("?tp_btf/tasklet_entry")
int on_tasklet_entry(u64 *ctx)
{
	struct cpu_state *state = own_state();

	if (state)
		begin(state, TASKLET, ctx[1], ctx[0], NO_DELAY);
	return 0;
}

SEC("?tp_btf/tasklet_exit")
int on_tasklet_exit(u64 *ctx)
{
	end(TASKLET, ctx[0], 0);
	return 0;
}

static __always_inline void keep_queued(u64 object, u64 stack, u64 function)
{
	struct queued queued = {
		.since_ns = bpf_ktime_get_ns(), .stack = stack, .function = function};

	bpf_map_update_elem(&waiting, &object, &queued, BPF_ANY);
}

// Work that is pending already is not queued again: this is the first time.
SEC("tp_btf/workqueue_queue_work")
int on_queue_work(u64 *ctx)
{
	keep_queued(ctx[2], with_stacks ? walk(ctx, 0, KERNEL_BIT) : STACK_NONE, 0);
	return 0;
}

static __always_inline void take_queued(u64 object, struct run *run, u64 now_ns)
{
	struct queued *queued = bpf_map_lookup_elem(&waiting, &object);

	if (!queued)
		return;
	run->delay_ns = since(queued->since_ns, now_ns);
	run->stack = queued->stack;
	if (queued->function)
		run->id = queued->function;
	bpf_map_delete_elem(&waiting, &object);
}

SEC("tp_btf/workqueue_execute_start")
int on_work_start(u64 *ctx)
{
	u64 now_ns = bpf_ktime_get_ns(), work = ctx[0];
	u32 worker = bpf_get_current_pid_tgid();
	struct run run = {.delay_ns = NO_DELAY, .object = work};

	run.id = function_of_work((void *)work);
	take_queued(work, &run, now_ns);
	run.began_ns = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&working, &worker, &run, BPF_ANY))
		COUNT(working_full);
	return 0;
}

SEC("tp_btf/workqueue_execute_end")
int on_work_end(u64 *ctx)
{
	u32 worker = bpf_get_current_pid_tgid();
	struct run *run = bpf_map_lookup_elem(&working, &worker);

	if (!run || run->object != ctx[0]) {
		COUNT(before);
		return 0;
	}
	add(run, WORK, 0);
	bpf_map_delete_elem(&working, &worker);
	return 0;
}

SEC("tp_btf/hrtimer_expire_entry")
int on_hrtimer_entry(u64 *ctx)
{
	struct hrtimer *timer = (void *)ctx[0];
	struct cpu_state *state = own_state();
	s64 now_ns = 0, due_ns;
	void *now = NULL;

	if (!state)
		return 0;
	// Not ctx[1]: Linux 5.10 refuses to load a pointer to an integer from a context.
	bpf_probe_read_kernel(&now, sizeof(now), &ctx[1]);
	bpf_probe_read_kernel(&now_ns, sizeof(now_ns), now);
	due_ns = BPF_CORE_READ(timer, _softexpires);
	begin(state, HRTIMER, (u64)BPF_CORE_READ(timer, function), ctx[0],
	      now_ns > due_ns ? now_ns - due_ns : 0);
	return 0;
}

SEC("tp_btf/hrtimer_expire_exit")
int on_hrtimer_exit(u64 *ctx)
{
	end(HRTIMER, ctx[0], 0);
	return 0;
}

SEC("tp_btf/timer_expire_entry")
int on_timer_entry(u64 *ctx)
{
	struct timer_list *timer = (void *)ctx[0];
	struct cpu_state *state = own_state();

	if (state)
		begin(state, TIMER, (u64)BPF_CORE_READ(timer, function), ctx[0], NO_DELAY);
	return 0;
}

SEC("tp_btf/timer_expire_exit")
int on_timer_exit(u64 *ctx)
{
	end(TIMER, ctx[0], 0);
	return 0;
}

// These two are raw, as programs of tp_btf may not read an argument that is a function's address. What
// the struct says is not it: that of a wake-up is a part of the task, with something else where others
// have their function (kernel/smp.c, CSD_TYPE_TTWU).
SEC("?raw_tp/csd_queue_cpu")
int on_call_queued(u64 *ctx)
{
	keep_queued(ctx[3], STACK_NONE, ctx[2]);
	return 0;
}

SEC("?raw_tp/csd_function_entry")
int on_call_entry(u64 *ctx)
{
	struct run run = {.delay_ns = NO_DELAY};
	struct cpu_state *state = own_state();

	if (!state || !ctx[1]) // without a struct it runs where it is asked for
		return 0;
	run.id = ctx[0];
	take_queued(ctx[1], &run, bpf_ktime_get_ns());
	begin(state, IPI, run.id, ctx[1], run.delay_ns);
	return 0;
}

SEC("?tp_btf/csd_function_exit")
int on_call_exit(u64 *ctx)
{
	if (ctx[1])
		end(IPI, ctx[1], 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
