#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

static volatile int seen;

static void on_signal(int number)
{
	(void)number;
	seen++;
}

__attribute__((noinline)) void notify_worker(pid_t worker)
{
	kill(worker, SIGUSR1);
}

int main(void)
{
	pid_t worker;

	signal(SIGUSR1, on_signal);
	worker = fork();
	if (!worker)
		for (;;)
			pause();
	for (;;) {
		notify_worker(worker);
		usleep(100);
	}
}
