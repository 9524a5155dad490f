// What a module has: functions to call (nf_conntrack's), a type to ask about, a function to watch.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

struct nf_conn {
	unsigned int timeout;
} __attribute__((preserve_access_index));

struct nf_conntrack_helper___of_module {
	unsigned int expect_class_max;
} __attribute__((preserve_access_index));

struct bpf_ct_opts___in {
	int netns_id;
	int error;
	__u8 l4proto;
	__u8 dir;
	__u8 reserved[2];
};

extern struct nf_conn *bpf_skb_ct_lookup(struct __sk_buff *, struct bpf_sock_tuple *, __u32,
					 struct bpf_ct_opts___in *, __u32) __ksym;
extern void bpf_ct_release(struct nf_conn *) __ksym;

volatile int error, found, offset, exists;

SEC("tc")
int look_up(struct __sk_buff *packet)
{
	struct bpf_ct_opts___in options = { .netns_id = -1, .l4proto = 6 };
	struct bpf_sock_tuple tuple = {};
	struct nf_conn *connection;

	connection = bpf_skb_ct_lookup(packet, &tuple, sizeof(tuple.ipv4), &options, sizeof(options));
	error = options.error;
	if (connection) {
		found = connection->timeout != 0;
		bpf_ct_release(connection);
	}
	return 0;
}

SEC("syscall")
int ask(void *context)
{
	struct nf_conntrack_helper___of_module *helper = 0;

	exists = bpf_core_type_exists(struct nf_conntrack_helper___of_module);
	offset = bpf_core_field_offset(helper->expect_class_max);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
