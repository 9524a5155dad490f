// A CO-RE relocation of each kind that clang can make.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

struct nested {
	int first;
	int second;
} __attribute__((preserve_access_index));

struct task_struct {
	int pid;
	struct nested nested[3];
	unsigned int bit : 5;
} __attribute__((preserve_access_index));

enum choice { CHOICE_A, CHOICE_B };

typedef int gone___v1;

volatile __u64 seen;

SEC("raw_tp/sched_switch")
int every_kind(struct task_struct **arguments)
{
	struct task_struct *task = arguments[1];

	seen += BPF_CORE_READ(task, pid);
	seen += BPF_CORE_READ(task, nested[2].second);
	seen += BPF_CORE_READ_BITFIELD_PROBED(task, bit);
	seen += bpf_core_field_exists(task->nested);
	seen += bpf_core_field_size(task->nested);
	seen += bpf_core_type_id_local(struct task_struct);
	seen += bpf_core_type_id_kernel(struct task_struct);
	seen += bpf_core_type_exists(gone___v1);
	seen += bpf_core_type_size(struct nested);
	seen += __builtin_preserve_type_info(*(struct nested *)0, 2);
	seen += bpf_core_enum_value_exists(enum choice, CHOICE_B);
	seen += bpf_core_enum_value(enum choice, CHOICE_B);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
