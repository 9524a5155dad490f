// Every kind of CO-RE question, asked about the types of core_values.target.c.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define TARGET __attribute__((preserve_access_index))

struct inner {
	int first;
	int second;
} TARGET;

struct thing {
	int moved;
	unsigned int widened;
	int gone;
	struct inner list[2];
	struct inner *next;
	int buried;
	struct inner tail[0];
} TARGET;

struct thing___flavoured {
	long moved;
} TARGET;

struct bits {
	int signed_bits : 4;
	unsigned int bits : 7;
	long long_bits : 33;
	unsigned char flag : 1;
	int whole;
	unsigned long wide;
} TARGET;

struct missing {
	int x;
} TARGET;

struct deep {
	int value;
	struct inner *pointee;
} TARGET;

struct deep___other {
	long value;
} TARGET;

typedef unsigned int word;

enum color { RED = 1, GREEN = 2, BLUE___here = 3, GONE = 4 };
enum large { HUGE = 1ULL << 40, NEGATIVE = -2LL };

unsigned long long results[64];

#define FIELD(place, type, field, kind) \
	results[place] = __builtin_preserve_field_info(((type *)0)->field, BPF_FIELD_##kind)
#define BITS(place, field)                                    \
	FIELD(place, struct bits, field, BYTE_OFFSET);        \
	FIELD(place + 1, struct bits, field, BYTE_SIZE);      \
	FIELD(place + 2, struct bits, field, LSHIFT_U64);     \
	FIELD(place + 3, struct bits, field, RSHIFT_U64);     \
	FIELD(place + 4, struct bits, field, SIGNED)

SEC("socket")
int fields(void *ctx)
{
	FIELD(0, struct thing, moved, BYTE_OFFSET);
	FIELD(1, struct thing, widened, BYTE_SIZE);
	FIELD(2, struct thing, gone, EXISTS);
	FIELD(3, struct thing, list[1].second, BYTE_OFFSET);
	FIELD(4, struct thing, list[1], BYTE_SIZE);
	FIELD(5, struct thing, next, EXISTS);
	FIELD(6, struct thing, buried, BYTE_OFFSET);
	FIELD(7, struct thing, tail[3].second, BYTE_OFFSET);
	FIELD(8, struct thing___flavoured, moved, BYTE_SIZE);
	FIELD(9, struct missing, x, EXISTS);
	FIELD(10, struct thing, list, BYTE_SIZE);
	return 0;
}

SEC("socket")
int bit_fields(void *ctx)
{
	BITS(0, signed_bits);
	BITS(5, bits);
	BITS(10, long_bits);
	BITS(15, flag);
	BITS(20, whole);
	BITS(25, wide);
	return 0;
}

SEC("socket")
int types(void *ctx)
{
	results[0] = bpf_core_type_id_local(struct thing);
	results[1] = bpf_core_type_id_kernel(struct thing);
	results[2] = bpf_core_type_exists(struct thing);
	results[3] = bpf_core_type_size(struct thing);
	results[4] = bpf_core_type_matches(struct deep);
	results[5] = bpf_core_type_matches(struct deep___other);
	results[6] = bpf_core_type_exists(struct missing);
	results[7] = bpf_core_type_size(struct missing);
	results[8] = bpf_core_type_id_kernel(struct missing);
	results[9] = bpf_core_type_size(word);
	return 0;
}

SEC("socket")
int enumerators(void *ctx)
{
	results[0] = bpf_core_enum_value(enum color, RED);
	results[1] = bpf_core_enum_value(enum color, BLUE___here);
	results[2] = bpf_core_enum_value_exists(enum color, GREEN);
	results[3] = bpf_core_enum_value_exists(enum color, GONE);
	results[4] = bpf_core_enum_value(enum large, HUGE);
	results[5] = bpf_core_enum_value(enum large, NEGATIVE);
	return 0;
}

SEC("socket")
int poisoned(void *ctx)
{
	FIELD(0, struct thing, gone, BYTE_OFFSET);
	FIELD(1, struct missing, x, BYTE_OFFSET);
	results[2] = bpf_core_enum_value(enum color, GONE);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
