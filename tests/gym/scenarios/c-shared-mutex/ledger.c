#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct book {
	pthread_mutex_t lock;
	long sales;
};

__attribute__((noinline)) void add_sale(struct book *book)
{
	pthread_mutex_lock(&book->lock);
	book->sales++;
	usleep(8000);
	pthread_mutex_unlock(&book->lock);
}

int main(void)
{
	struct book *book = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&book->lock, &attr);
	for (int i = 0; i < 5; i++)
		if (!fork()) {
			prctl(PR_SET_NAME, "ledger: writer");
			for (;;)
				add_sale(book);
		}
	wait(0);
}
