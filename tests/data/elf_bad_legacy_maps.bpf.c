// Read, but not created: a definition that asks, behind the five fields, for what nobody knows.
#include <linux/bpf.h>

struct {
	unsigned int type, key_size, value_size, max_entries, map_flags, id, pinning;
} old __attribute__((section("maps"), used)) = { BPF_MAP_TYPE_ARRAY, 4, 4, 1, 0, 0, 2 };
