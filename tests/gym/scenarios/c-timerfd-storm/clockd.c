#include <stdint.h>
#include <sys/timerfd.h>
#include <unistd.h>

static __attribute__((noinline)) uint64_t wait_tick(int timer)
{
	uint64_t ticks = 0;

	return read(timer, &ticks, sizeof(ticks)) == sizeof(ticks) ? ticks : 0;
}

int main(void)
{
	struct itimerspec each = { .it_interval = { 0, 40000 }, .it_value = { 0, 40000 } };
	int timer = timerfd_create(CLOCK_MONOTONIC, 0);
	volatile uint64_t sum = 0;

	timerfd_settime(timer, 0, &each, NULL);
	for (;;)
		sum = sum + wait_tick(timer);
}
