#include <pthread.h>
#include <unistd.h>

static void *run_job(void *arg)
{
	return arg;
}

__attribute__((noinline)) void dispatch_job(void)
{
	pthread_t thread;
	if (!pthread_create(&thread, 0, run_job, 0))
		pthread_join(thread, 0);
}

int main(void)
{
	for (;;)
		dispatch_job();
}
