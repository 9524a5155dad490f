// Writers keep the rw_semaphore of an inode held; a thread of real-time priority on each CPU wakes up
// while they do, and waits for it: inode_lock [WAITS] prints the nanoseconds of such a wait.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define WRITERS 2
#define BYTES (1 << 17)

static int file, waits;
static volatile int over;
static char data[BYTES];

static void *keep_held(void *nothing)
{
	while (!over)
		if (pwrite(file, data, BYTES, 0) != BYTES)
			exit(1);
	return nothing;
}

static void *wait_for_it(void *nothing)
{
	struct sched_param priority = {.sched_priority = 1};

	if (sched_setscheduler(0, SCHED_FIFO, &priority))
		exit(1);
	for (int i = 0; i < waits; i++) {
		usleep(100);
		if (pwrite(file, data, 1, 0) != 1)
			exit(1);
	}
	return nothing;
}

int main(int argc, char **argv)
{
	pthread_t writers[WRITERS], waiters[2];
	struct timespec began, ended;

	waits = argc > 1 ? atoi(argv[1]) : 10007;
	file = memfd_create("written", 0);
	clock_gettime(CLOCK_MONOTONIC, &began);
	for (int i = 0; i < WRITERS; i++)
		pthread_create(&writers[i], NULL, keep_held, NULL);
	for (int i = 0; i < 2; i++)
		pthread_create(&waiters[i], NULL, wait_for_it, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(waiters[i], NULL);
	over = 1;
	for (int i = 0; i < WRITERS; i++)
		pthread_join(writers[i], NULL);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	printf("%.1f\n",
	       ((ended.tv_sec - began.tv_sec) * 1e9 + (ended.tv_nsec - began.tv_nsec)) / waits / 2);
	return 0;
}
