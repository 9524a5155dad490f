// Static probes whose arguments are elements of arrays, described as by usdt.bpf.h of libbpf 1.7.
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

enum where { CONST, REG, REG_DEREF, SIB };

struct argument {
	__u64 val_off;
	enum where arg_type : 8;
	__u16 idx_reg_off : 12;
	__u16 scale_bitshift : 4;
	__u8 __reserved : 8;
	short reg_off;
	bool arg_signed;
	char arg_bitshift;
};

struct spec {
	struct argument args[12];
	__u64 usdt_cookie;
	short arg_cnt;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, int);
	__type(value, struct spec);
} __bpf_usdt_specs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4);
	__type(key, long);
	__type(value, __u32);
} __bpf_usdt_ip_to_spec_id SEC(".maps");

__u32 values[3];

SEC("usdt")
int on_indexed(struct pt_regs *regs)
{
	__u32 number = bpf_get_attach_cookie(regs);
	struct spec *spec = bpf_map_lookup_elem(&__bpf_usdt_specs, &number);

	for (int i = 0; spec && i < 3; i++) {
		struct argument *argument = &spec->args[i];
		unsigned long base = 0, index = 0;

		if (argument->arg_type != SIB)
			return 0;
		bpf_probe_read_kernel(&base, sizeof(base), (void *)regs + argument->reg_off);
		bpf_probe_read_kernel(&index, sizeof(index), (void *)regs + argument->idx_reg_off);
		base += (index << argument->scale_bitshift) + argument->val_off;
		bpf_probe_read_user(&values[i], sizeof(values[i]), (void *)base);
	}
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
