// One kernel function under several declarations: what follows the last ___ is not its name.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

extern void bpf_rcu_read_lock___again(void) __ksym __weak;
extern void bpf_rcu_read_unlock___again(void) __ksym __weak;
extern void bpf_rcu_read_unlock___of_another_type(int) __ksym __weak;

struct {
	__u64 locked, other_type, function;
} seen;

SEC("tp_btf/sched_switch")
int use_flavours(void *context)
{
	if (bpf_rcu_read_lock___again) {
		bpf_rcu_read_lock___again();
		bpf_rcu_read_unlock___again();
		seen.locked++;
	}
	seen.other_type = bpf_rcu_read_unlock___of_another_type != 0;
	if (bpf_rcu_read_unlock___of_another_type)
		bpf_rcu_read_unlock___of_another_type(1);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
