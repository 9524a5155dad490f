// Global variables in every kind of section, of every linkage, and of types worth a codec.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

enum mood { CALM, CROSS = 7 };

struct inner {
	__u8 tag;
	__s16 points[3];
};

struct record {
	__u64 total;
	struct inner inner[2];
	union {
		__u32 word;
		__u8 bytes[4];
	};
	__u32 small : 3, wide : 20;
	char name[16];
	enum mood mood;
};

const volatile __u32 target_pid = 42;
const volatile struct record expected = { .total = 9, .name = "nine", .mood = CROSS };
const volatile char __hidden secret = 's';

volatile __u64 counter;
volatile struct record last;
volatile __s32 table[1000];
static volatile __u32 private_count;

volatile __s64 level = -5;
volatile __u8 flags[3] = { 1, 2, 3 };
static volatile __u16 private_level = 77;
__weak volatile __u32 maybe = 11;

volatile __u32 extra SEC(".data.extra") = 12;
const volatile __u32 tuning SEC(".rodata.tuning") = 13;
volatile __u32 hidden_place __hidden SEC(".bss.hidden");

SEC("raw_tp/sched_switch")
int use_everything(void *context)
{
	counter += target_pid + expected.total + secret;
	last.total = counter;
	table[7] = level + flags[1];
	private_count += private_level + maybe;
	extra += tuning;
	hidden_place++;
	bpf_trace_printk("a string literal of its own", 28);
	return table[8] + last.inner[1].points[2];
}

char LICENSE[] SEC("license") = "GPL";
