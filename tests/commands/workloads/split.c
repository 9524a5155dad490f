// Spends 70 % of its time in one function and 30 % in another, in rounds of different lengths: those
// of one length could keep in step with who samples.
#include <stdint.h>
#include <unistd.h>

static volatile uint64_t sink;
static void *volatile frame;

// gcc gives a function that calls nothing no frame of its own, and its caller would be missing.
#define HAVE_FRAME (frame = __builtin_frame_address(0))

__attribute__((noinline)) void spend_seventy(uint32_t length)
{
	HAVE_FRAME;
	for (uint32_t i = 0; i < 70 * length; i++)
		sink += i;
}

__attribute__((noinline)) void spend_thirty(uint32_t length)
{
	HAVE_FRAME;
	for (uint32_t i = 0; i < 30 * length; i++)
		sink += i;
}

int main(void)
{
	uint32_t random = 1;

	write(1, "ready\n", 6);
	for (;;) {
		random = random * 1664525 + 1013904223;
		spend_seventy(500 + random / 4294968);
		spend_thirty(500 + random / 4294968);
	}
}
