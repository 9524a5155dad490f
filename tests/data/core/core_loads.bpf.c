// Loads and stores of fields that have another place, and sometimes another width, elsewhere.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct sized {
	unsigned int widened;
	unsigned long narrowed;
	int signed_widened;
	void *pointer;
	unsigned short array[4];
	unsigned char same;
} __attribute__((preserve_access_index));

#define PROGRAM(name, ...)                     \
	SEC("raw_tracepoint/" #name)           \
	int name(void **arguments)             \
	{                                      \
		struct sized *sized = arguments[0]; \
		__VA_ARGS__;                   \
	}

PROGRAM(load_widened, return sized->widened)
PROGRAM(load_narrowed, return sized->narrowed)
PROGRAM(load_signed, return sized->signed_widened)
PROGRAM(load_pointer, return (long)sized->pointer)
PROGRAM(load_element, return sized->array[2])
PROGRAM(load_same, return sized->same)
PROGRAM(store_register, sized->narrowed = (long)arguments; return 0)
PROGRAM(store_constant, sized->same = 3; return 0)

char LICENSE[] SEC("license") = "GPL";
