#include <time.h>

static __attribute__((noinline)) unsigned long sample_channels(unsigned long state)
{
	for (int i = 0; i < 3000000; i++)
		state = state * 6364136223846793005UL + 1442695040888963407UL;
	return state;
}

int main(void)
{
	volatile unsigned long state = 1;
	struct timespec pause = { 0, 300000 };

	for (;;) {
		state = sample_channels(state);
		nanosleep(&pause, 0);
	}
}
