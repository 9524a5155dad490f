// Another kernel's idea of the types of core_values.bpf.c, with values that bit fields must read.
struct inner {
	long before;
	int second;
	int first;
};

typedef const struct inner tail_type;

struct thing {
	char pad[100];
	unsigned long widened;
	const struct inner list[5];
	int moved;
	union {
		int unrelated;
		struct {
			char skipped[3];
			struct {
				long pad_too;
				unsigned short buried;
			};
		};
	};
	struct inner *next;
	tail_type tail[];
};

struct bits {
	char pad;
	int signed_bits : 5;
	unsigned char flag : 1;
	unsigned int bits : 19;
	short whole;
	char pad_more;
	unsigned int skipped : 7;
	long long_bits : 50;
	long wide;
} __attribute__((packed));

struct deep {
	char before;
	struct inner *pointee;
	int value;
};

typedef unsigned long word;

enum color { PURPLE, BLUE___there = 30, GREEN = 20, RED = 10 };
enum large { MINUS = -1LL, NEGATIVE = -20LL, HUGE = 1ULL << 45 };

struct thing thing;
struct deep deep;
word word_anchor;
enum color color;
enum large large;

struct bits bits = {
	.pad = 0x55,
	.signed_bits = -11,
	.flag = 1,
	.bits = 0x5a5a5,
	.whole = -12345,
	.long_bits = -0x1122334455667,
	.wide = 0x1122334455667788,
};
