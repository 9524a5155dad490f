#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct job {
	atomic_int done;
	atomic_int waiters;
	struct job *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static struct job *jobs;

static __attribute__((noinline)) int await_result(struct job *job)
{
	struct timespec limit = { 0, 400000000 };
	int rounds = 0;

	while (!atomic_load(&job->done)) {
		if (syscall(SYS_futex, &job->done, FUTEX_WAIT_PRIVATE, 0, &limit, NULL, 0) == 0)
			rounds++;
		atomic_fetch_add(&job->waiters, 1); /* too late: the worker has looked */
	}
	return rounds + 1;
}

static void *work(void *unused)
{
	(void)unused;
	for (;;) {
		struct job *job;

		pthread_mutex_lock(&lock);
		while (!jobs)
			pthread_cond_wait(&filled, &lock);
		job = jobs;
		jobs = job->next;
		pthread_mutex_unlock(&lock);
		usleep(3000);
		atomic_store(&job->done, 1);
		if (atomic_load(&job->waiters))
			syscall(SYS_futex, &job->done, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	return NULL;
}

static __attribute__((noinline)) int handle_client(int client)
{
	struct job job = { 0 };
	char text[4096];
	int result = 0;

	if (read(client, text, sizeof(text)) > 0) {
		pthread_mutex_lock(&lock);
		job.next = jobs;
		jobs = &job;
		pthread_cond_signal(&filled);
		pthread_mutex_unlock(&lock);
		result = await_result(&job);
		dprintf(client, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n");
	}
	close(client);
	return result;
}

static void *serve(void *client)
{
	handle_client((int)(long)client);
	return NULL;
}

int main(int argc, char **argv)
{
	int one = 1, server = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[1])) };
	pthread_t thread;

	setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (argc < 2 || bind(server, (void *)&at, sizeof(at)) || listen(server, 64))
		return 1;
	for (int at_work = 0; at_work < 2; at_work++)
		pthread_create(&thread, NULL, work, NULL);
	for (;;) {
		long client = accept(server, NULL, NULL);

		pthread_create(&thread, NULL, serve, (void *)client);
		pthread_detach(thread);
	}
}
