// Two threads of one CPU that wake each other: each turn waits twice in futex(2). Prints how long a
// turn takes, in ns.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static sem_t there, back;
static long turns;

static void *answer(void *nothing)
{
	for (long i = 0; i < turns; i++) {
		sem_wait(&there);
		sem_post(&back);
	}
	return nothing;
}

static double now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(int count, char **words)
{
	pthread_t other;
	cpu_set_t cpus;
	double began;

	turns = count > 1 ? atol(words[1]) : 20000;
	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		return 1;
	pthread_create(&other, NULL, answer, NULL);
	began = now_ns();
	for (long i = 0; i < turns; i++) {
		sem_post(&there);
		sem_wait(&back);
	}
	printf("%.1f\n", (now_ns() - began) / turns);
	pthread_join(other, NULL);
	return 0;
}
