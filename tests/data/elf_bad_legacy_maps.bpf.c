// Refused: maps as they were defined before BTF.
#include <linux/bpf.h>

struct {
	unsigned int type, key_size, value_size, max_entries, map_flags;
} old __attribute__((section("maps"), used)) = { BPF_MAP_TYPE_ARRAY, 4, 4, 1, 0 };
