// Threads that wait in known ways.
//
//   wait three              one spins, one reads, main joins, for ever
//   wait forks N MS         N children sleep MS each, at once
//   wait convoy N ROUNDS    N threads queue for a lock that "holder" holds, 5 ms each time
//   wait naps N US          N sleeps of US (0: for ever), then the ns they took, on standard output
//   wait pingpong N         two processes pass a byte N times
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static int nowhere[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t round_begins;
static int rounds;
static volatile int queued;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static void nap(long us)
{
	struct timespec time = {us / 1000000, us % 1000000 * 1000};

	while (nanosleep(&time, &time))
		;
}

static void *spin(void *arg)
{
	for (volatile unsigned long i = 0;; i++)
		;
	return arg;
}

static NOINLINE void *read_for_ever(void *arg)
{
	char byte;

	while (read(nowhere[0], &byte, 1) > 0)
		;
	return arg;
}

static NOINLINE void join_for_ever(pthread_t thread)
{
	pthread_join(thread, NULL);
}

static void three(void)
{
	pthread_t spinner, reader;

	if (pipe(nowhere))
		exit(1);
	pthread_create(&spinner, NULL, spin, NULL);
	pthread_setname_np(spinner, "spinner");
	pthread_create(&reader, NULL, read_for_ever, NULL);
	pthread_setname_np(reader, "reader");
	nap(50000);
	puts("ready");
	fflush(stdout);
	join_for_ever(spinner);
}

static void forks(int children, int ms)
{
	for (int i = 0; i < children; i++)
		if (!fork()) {
			nap(ms * 1000L);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
}

static NOINLINE void take_the_lock(void)
{
	__sync_fetch_and_add(&queued, 1);
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
}

static void *queue(void *arg)
{
	for (int i = 0; i < rounds; i++) {
		pthread_barrier_wait(&round_begins);
		take_the_lock();
		pthread_barrier_wait(&round_begins);
	}
	return arg;
}

static NOINLINE void release_the_lock(void)
{
	pthread_mutex_unlock(&lock);
}

static void *hold(void *waiters)
{
	for (int i = 0; i < rounds; i++) {
		queued = 0;
		pthread_mutex_lock(&lock);
		pthread_barrier_wait(&round_begins);
		while (queued < (long)waiters)
			sched_yield();
		nap(5000);
		release_the_lock();
		pthread_barrier_wait(&round_begins);
	}
	return NULL;
}

static void convoy(long waiters)
{
	pthread_t holder, others[64];

	pthread_barrier_init(&round_begins, NULL, waiters + 1);
	pthread_create(&holder, NULL, hold, (void *)waiters);
	pthread_setname_np(holder, "holder");
	for (int i = 0; i < waiters; i++) {
		pthread_create(&others[i], NULL, queue, NULL);
		pthread_setname_np(others[i], "waiter");
	}
	for (int i = 0; i < waiters; i++)
		pthread_join(others[i], NULL);
	pthread_join(holder, NULL);
}

static void naps(int times, int us)
{
	uint64_t start = now_ns();

	if (!times) {
		puts("ready");
		fflush(stdout);
	}
	for (int i = 0; i < times || !times; i++)
		nap(us);
	printf("%llu\n", (unsigned long long)(now_ns() - start));
}

static void pass(int from, int to, int times)
{
	char byte = 0;

	for (int i = 0; i < times; i++)
		if (write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1)
			exit(1);
}

static void pingpong(int times)
{
	int there[2], back[2];

	if (pipe(there) || pipe(back))
		exit(1);
	if (!fork()) {
		char byte;

		for (int i = 0; i < times; i++)
			if (read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1)
				_exit(1);
		_exit(0);
	}
	pass(back[0], there[1], times);
	wait(NULL);
}

int main(int argc, char **argv)
{
	int first = argc > 2 ? atoi(argv[2]) : 0, second = argc > 3 ? atoi(argv[3]) : 0;

	if (argc < 2)
		return 2;
	rounds = second;
	if (!strcmp(argv[1], "three"))
		three();
	else if (!strcmp(argv[1], "forks"))
		forks(first, second);
	else if (!strcmp(argv[1], "convoy"))
		convoy(first);
	else if (!strcmp(argv[1], "naps"))
		naps(first, second);
	else if (!strcmp(argv[1], "pingpong"))
		pingpong(first);
	else
		return 2;
	return 0;
}
