// Two threads, each in an endless loop of one instruction: two stacks that never change.
#include <pthread.h>
#include <unistd.h>

static void *stand_left(void *unused)
{
	for (;;)
		__asm__ volatile("");
	return unused;
}

__attribute__((noinline)) void *stand_right(void *unused)
{
	for (;;)
		__asm__ volatile("");
	return unused;
}

int main(void)
{
	pthread_t left;

	pthread_create(&left, 0, stand_left, 0);
	write(1, "ready\n", 6);
	stand_right(0);
}
