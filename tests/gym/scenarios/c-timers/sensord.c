#include <time.h>

volatile long value;

__attribute__((noinline)) void poll_sensor(void)
{
	struct timespec pause = {0, 20000};

	nanosleep(&pause, NULL);
	value++;
}

int main(void)
{
	for (;;)
		poll_sensor();
}
