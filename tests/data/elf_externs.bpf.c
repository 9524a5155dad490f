// What the kernel has to supply: symbols with and without a type, functions, configuration.
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

struct task_struct;

extern const int bpf_prog_active __ksym;
extern const void init_task __ksym;
extern const struct task_struct absent __ksym __weak;
extern void bpf_rcu_read_lock(void) __ksym;
extern void bpf_rcu_read_unlock(void) __ksym __weak;
extern int bpf_no_parameter_names(int, void *) __ksym __weak;

extern int LINUX_KERNEL_VERSION __kconfig;
extern bool CONFIG_BPF_SYSCALL __kconfig __weak;
extern char CONFIG_DEFAULT_HOSTNAME[10] __kconfig __weak;
extern unsigned long CONFIG_HZ __kconfig __weak;

volatile __u64 seen;

SEC("raw_tp/sched_switch")
int use_externs(void *context)
{
	seen += bpf_prog_active + (__u64)&init_task;
	seen += LINUX_KERNEL_VERSION + CONFIG_BPF_SYSCALL + CONFIG_DEFAULT_HOSTNAME[1] + CONFIG_HZ;
	if (&absent)
		seen++;
	bpf_rcu_read_lock();
	if (bpf_rcu_read_unlock)
		bpf_rcu_read_unlock();
	if (bpf_no_parameter_names)
		bpf_no_parameter_names(0, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
