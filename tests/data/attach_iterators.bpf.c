// Iterators: over tasks, over the elements of a map, over cgroups.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct task_struct {
	int pid, tgid;
} __attribute__((preserve_access_index));

struct bpf_iter_meta {
	void *seq;
	__u64 session_id, seq_num;
} __attribute__((preserve_access_index));

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} __attribute__((preserve_access_index));

struct bpf_iter__bpf_map_elem {
	struct bpf_iter_meta *meta;
	void *map, *key, *value;
} __attribute__((preserve_access_index));

struct kernfs_node {
	__u64 id;
} __attribute__((preserve_access_index));

struct cgroup {
	struct kernfs_node *kn;
} __attribute__((preserve_access_index));

struct bpf_iter__cgroup {
	struct bpf_iter_meta *meta;
	struct cgroup *cgroup;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, __u32);
	__type(value, __u64);
} squares SEC(".maps");

struct square {
	__u64 number, result;
} *squares_record;

SEC("?iter/task")
int list_tasks(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	int pid;

	if (!task)
		return 0;
	pid = task->pid; /* older verifiers want what is written on the stack */
	bpf_seq_write(context->meta->seq, &pid, sizeof(pid));
	return 0;
}

SEC("?iter/bpf_map_elem")
int list_squares(struct bpf_iter__bpf_map_elem *context)
{
	__u32 *key = context->key;
	__u64 *value = context->value;
	struct square line;

	if (!key || !value)
		return 0;
	line.number = *key;
	line.result = *value;
	bpf_seq_write(context->meta->seq, &line, sizeof(line));
	return 0;
}

SEC("?iter/cgroup")
int list_cgroups(struct bpf_iter__cgroup *context)
{
	struct cgroup *group = context->cgroup;

	if (group) {
		__u64 id = group->kn->id;

		bpf_seq_write(context->meta->seq, &id, sizeof(id));
	}
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
