#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGES 4096L

static char *heap;
static volatile long dirty;

static void on_write(int number, siginfo_t *info, void *context)
{
	char *page = (char *)((uintptr_t)info->si_addr & ~4095UL);

	(void)number;
	(void)context;
	dirty++;
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static __attribute__((noinline)) int protect_all(void)
{
	dirty = 0;
	return mprotect(heap, PAGES * 4096, PROT_READ) ? 1 : 0;
}

static __attribute__((noinline)) long update_object(long number)
{
	heap[(number * 7919 % PAGES) * 4096 + 8]++;
	return heap[8];
}

int main(void)
{
	struct sigaction action;
	volatile long sum = 0;

	memset(&action, 0, sizeof(action));
	action.sa_sigaction = on_write;
	action.sa_flags = SA_SIGINFO;
	sigaction(SIGSEGV, &action, NULL);
	heap = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(heap, 1, PAGES * 4096);
	for (;;) {
		sum += protect_all();
		for (long number = 0; number < PAGES; number++)
			sum += update_object(number);
		usleep(2000);
	}
}
