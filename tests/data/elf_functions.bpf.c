// Where functions can live: several programs in a section, subprograms of every linkage, callbacks.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define noinline_in(name) __attribute__((noinline, section(name)))

int calls;

static __noinline int in_text(int x)
{
	calls += x;
	return x * 3;
}

__noinline int global_in_text(int x)
{
	return in_text(x) + 1;
}

__hidden __noinline int hidden_in_text(int *x)
{
	return x ? *x : 0;
}

__weak __noinline int weak_in_text(int x)
{
	calls ^= x;
	return calls;
}

static noinline_in("subprograms") int elsewhere(int x)
{
	calls -= x;
	return global_in_text(x) + 2;
}

noinline_in("subprograms") int global_elsewhere(int x)
{
	return elsewhere(x) + 3;
}

static int on_loop(__u32 index, void *context)
{
	calls += index;
	return index > 3;
}

SEC("tp/sched/sched_switch")
int first(void *context)
{
	return in_text(1) + global_in_text(2);
}

SEC("tp/sched/sched_switch")
int second(void *context)
{
	int value = 5;

	return hidden_in_text(&value) + weak_in_text(7);
}

SEC("?tp/sched/sched_switch")
int optional(void *context)
{
	return global_elsewhere(4);
}

SEC("raw_tp/sched_switch")
int with_callback(void *context)
{
	return bpf_loop(10, on_loop, 0, 0);
}

SEC("nobody/knows")
int unknown(void *context)
{
	return 0;
}

SEC("socket/2")
int lenient(void *context)
{
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
