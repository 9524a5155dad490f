#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER, index_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile long done;

__attribute__((noinline)) void close_batch(void)
{
	pthread_mutex_lock(&journal);
	usleep(2000);
	pthread_mutex_lock(&index_lock);
	done++;
	pthread_mutex_unlock(&index_lock);
	pthread_mutex_unlock(&journal);
}

__attribute__((noinline)) void open_batch(void)
{
	pthread_mutex_lock(&index_lock);
	usleep(2000);
	pthread_mutex_lock(&journal);
	done++;
	pthread_mutex_unlock(&journal);
	pthread_mutex_unlock(&index_lock);
}

static void *closer(void *unused)
{
	for (;;) {
		close_batch();
		usleep(100);
	}
	return unused;
}

static void *opener(void *unused)
{
	for (;;) {
		open_batch();
		usleep(100);
	}
	return unused;
}

int main(void)
{
	pthread_t threads[2];

	pthread_create(&threads[0], NULL, closer, NULL);
	pthread_create(&threads[1], NULL, opener, NULL);
	for (;;)
		sleep(1);
}
