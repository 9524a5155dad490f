// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Copies the kernel's code as it runs, with its patched instructions. User space runs the program by
// BPF_PROG_TEST_RUN; its arguments are the address and the number of bytes.
#include "purebpf.h"

#define CHUNK (1 << 16)

struct chunk {
	u8 bytes[CHUNK];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct chunk);
} text SEC(".maps");

SEC("raw_tp")
int read_text(u64 *ctx)
{
	u64 address = ctx[0], size = ctx[1];
	u32 zero = 0;
	struct chunk *chunk = bpf_map_lookup_elem(&text, &zero);

	if (!chunk || size > CHUNK)
		return -1;
	return bpf_probe_read_kernel(chunk->bytes, size, (void *)address);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
