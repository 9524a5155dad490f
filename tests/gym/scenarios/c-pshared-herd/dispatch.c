#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define WORKERS 24

struct board {
	pthread_mutex_t lock;
	pthread_cond_t posted;
	long jobs, done;
};

static __attribute__((noinline)) void take_job(struct board *board)
{
	pthread_mutex_lock(&board->lock);
	while (!board->jobs)
		pthread_cond_wait(&board->posted, &board->lock);
	board->jobs--;
	board->done++;
	pthread_mutex_unlock(&board->lock);
}

static __attribute__((noinline)) void post_job(struct board *board)
{
	pthread_mutex_lock(&board->lock);
	board->jobs++;
	pthread_cond_broadcast(&board->posted);
	pthread_mutex_unlock(&board->lock);
}

int main(void)
{
	struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t shared;
	pthread_condattr_t shared_too;

	pthread_mutexattr_init(&shared);
	pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&board->lock, &shared);
	pthread_condattr_init(&shared_too);
	pthread_condattr_setpshared(&shared_too, PTHREAD_PROCESS_SHARED);
	pthread_cond_init(&board->posted, &shared_too);
	for (int i = 0; i < WORKERS; i++)
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				take_job(board);
		}
	for (;;) {
		post_job(board);
		usleep(1000);
	}
}
