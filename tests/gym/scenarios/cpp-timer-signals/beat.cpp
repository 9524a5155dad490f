#include <csignal>
#include <ctime>
#include <unistd.h>

static volatile sig_atomic_t beats;

static void on_beat(int)
{
	beats = beats + 1;
}

int main()
{
	signal(SIGUSR2, on_beat);
	sigevent event{};
	event.sigev_notify = SIGEV_SIGNAL;
	event.sigev_signo = SIGUSR2;
	timer_t timer;
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	itimerspec each{{0, 200000}, {0, 200000}};
	timer_settime(timer, 0, &each, nullptr);
	for (;;)
		pause();
}
