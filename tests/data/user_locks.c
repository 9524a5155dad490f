// Threads that wait for a lock of a known kind, which the first thread holds: user_locks KIND THREADS
//
// Each line that comes goes one step on: start the threads, let go. Says "ready", then its thread ID,
// then when it began to start the threads, when it let go, and when the last had ended (nanoseconds of
// CLOCK_MONOTONIC).
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static const char *kind;
static int given;

static int is(const char *name)
{
	return !strcmp(kind, name);
}

static __attribute__((noinline)) void hold(void)
{
	if (is("mutex"))
		pthread_mutex_lock(&mutex);
	if (is("rwlock"))
		pthread_rwlock_wrlock(&rwlock);
	sem_init(&semaphore, 0, 0);
}

static __attribute__((noinline)) void give(int threads)
{
	if (is("mutex"))
		pthread_mutex_unlock(&mutex);
	if (is("rwlock"))
		pthread_rwlock_unlock(&rwlock);
	while (is("semaphore") && threads--)
		sem_post(&semaphore);
	if (is("condition")) {
		pthread_mutex_lock(&mutex);
		given = 1;
		pthread_cond_signal(&condition);
		pthread_mutex_unlock(&mutex);
	}
}

static __attribute__((noinline)) void *wait_here(void *nothing)
{
	if (is("mutex")) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	} else if (is("rwlock")) {
		pthread_rwlock_rdlock(&rwlock);
		pthread_rwlock_unlock(&rwlock);
	} else if (is("semaphore")) {
		sem_wait(&semaphore);
	} else {
		pthread_mutex_lock(&mutex);
		while (!given)
			pthread_cond_wait(&condition, &mutex);
		pthread_cond_signal(&condition);
		pthread_mutex_unlock(&mutex);
	}
	return nothing;
}

static long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void await_line(void)
{
	char line[8];

	if (!fgets(line, sizeof(line), stdin))
		exit(1);
}

int main(int count, char **words)
{
	int threads = atoi(words[2]);
	pthread_t others[threads];
	long long began, let_go;

	kind = words[1];
	setlinebuf(stdout);
	hold();
	puts("ready");
	await_line();
	began = now();
	for (int i = 0; i < threads; i++)
		pthread_create(&others[i], NULL, wait_here, NULL);
	printf("%d\n", gettid());
	await_line();
	let_go = now();
	give(threads);
	for (int i = 0; i < threads; i++)
		pthread_join(others[i], NULL);
	printf("%lld %lld %lld\n", began, let_go, now());
	await_line();
	return count < 3;
}
