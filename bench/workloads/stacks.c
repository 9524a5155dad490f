/* Spends its time in some 16,000 distinct call paths: each level calls left or right by a bit. */
#include <stdint.h>

typedef void (*path_fn)(uint32_t bits, int depth);
static volatile uint64_t sink;

static void left(uint32_t bits, int depth);
static void right(uint32_t bits, int depth);

static __attribute__((noinline)) void spin(void)
{
	for (int i = 0; i < 2000; i++)
		sink += i;
}

#define STEP(name, add)                                                                            \
	static __attribute__((noinline)) void name(uint32_t bits, int depth)                        \
	{                                                                                           \
		if (depth == 0) {                                                                   \
			spin();                                                                     \
		} else {                                                                            \
			path_fn next = bits & 1 ? left : right;                                     \
			next(bits >> 1, depth - 1);                                                 \
		}                                                                                   \
		sink += add;                                                                        \
	}
STEP(left, 1)
STEP(right, 2)

int main(void)
{
	for (uint32_t path = 0;; path = path * 1664525 + 1013904223)
		left(path >> 18, 14);
}
