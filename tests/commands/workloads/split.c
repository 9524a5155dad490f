// Spends 70 % of its time in one function and 30 % in another.
#include <stdint.h>
#include <unistd.h>

static volatile uint64_t sink;
static void *volatile frame;

// gcc gives a function that calls nothing no frame of its own, and its caller would be missing.
#define HAVE_FRAME (frame = __builtin_frame_address(0))

__attribute__((noinline)) void spend_seventy(void)
{
	HAVE_FRAME;
	for (int i = 0; i < 70000; i++)
		sink += i;
}

__attribute__((noinline)) void spend_thirty(void)
{
	HAVE_FRAME;
	for (int i = 0; i < 30000; i++)
		sink += i;
}

int main(void)
{
	write(1, "ready\n", 6);
	for (;;) {
		spend_seventy();
		spend_thirty();
	}
}
