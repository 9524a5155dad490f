// Switches with so many cases that clang 22 jumps through tables (gotox): one in each program, and
// one in a function that both share, so that tables move with what they are for.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct request {
	__u32 own;
	__u32 shared;
};

volatile __u64 x = 1000;

#define CASE(number, result) case number: return result;

static __noinline __u64 shared(__u32 which)
{
	switch (which) {
	CASE(0, x + 1) CASE(1, x * 3) CASE(2, x - 5) CASE(3, x / 7) CASE(4, x << 3) CASE(5, x ^ 11)
	CASE(6, x | 13) CASE(7, x & 17) CASE(8, -x) CASE(9, ~x) CASE(10, x % 19) CASE(11, x >> 2)
	CASE(12, x * x) CASE(14, x + x)
	}
	return 23;
}

static __always_inline __u64 own(__u32 which, __u64 base)
{
	switch (which) {
	CASE(1, base + x) CASE(2, base * x) CASE(3, base - x) CASE(4, base | x) CASE(5, base ^ x)
	CASE(6, base << 4) CASE(7, base >> 1) CASE(8, base % 29) CASE(9, base / 3) CASE(10, ~base)
	CASE(11, -base) CASE(12, x * 31) CASE(13, x / 5) CASE(14, x + 37)
	}
	return 41;
}

SEC("syscall")
int first(struct request *request)
{
	return own(request->own, 43) + shared(request->shared);
}

SEC("syscall")
int second(struct request *request)
{
	return shared(request->shared) - own(request->own, 47);
}
