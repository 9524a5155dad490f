// Kernel symbols without a type, kernel functions, and what no kernel has.
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

extern const void schedule __ksym;
extern const int no_such_variable __ksym __weak;
extern const void no_such_symbol __ksym __weak;

extern void bpf_rcu_read_lock(void) __ksym __weak;
extern void bpf_rcu_read_unlock(void) __ksym __weak;
extern int no_such_function(int) __ksym __weak;

struct {
	__u64 address, variable, symbol, function, locked;
} seen;

SEC("raw_tp/sched_switch")
int use_symbols(void *context)
{
	seen.address = (__u64)&schedule;
	seen.variable = &no_such_variable != 0;
	seen.symbol = &no_such_symbol != 0;
	return 0;
}

SEC("tp_btf/sched_switch")
int use_functions(void *context)
{
	if (bpf_rcu_read_lock && bpf_rcu_read_unlock) {
		bpf_rcu_read_lock();
		bpf_rcu_read_unlock();
		seen.locked++;
	}
	seen.function = no_such_function != 0;
	if (no_such_function)
		seen.function = no_such_function(1);
	return 0;
}

SEC("?tp_btf/sched_switch")
int call_what_is_not_there(void *context)
{
	return no_such_function(1);
}

char LICENSE[] SEC("license") = "GPL";
