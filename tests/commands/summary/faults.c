/* `faults FILE`: 1,009 pages of memory and 17 of a file are touched for the first time. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096L
#define APART 64 /* pages between those of the file that are touched: no readahead */

static volatile char sink;

__attribute__((noinline)) void touch_memory(char *memory, int pages)
{
	for (int i = 0; i < pages; i++)
		memory[i * PAGE] = 1;
}

__attribute__((noinline)) void touch_file(char *file, int pages)
{
	for (int i = 0; i < pages; i++)
		sink = file[i * PAGE * APART];
}

static char *memory, *file;

static void *in_thread(void *unused)
{
	pthread_setname_np(pthread_self(), "toucher");
	touch_memory(memory + 1000 * PAGE, 9);
	return unused;
}

int main(int count, char **words)
{
	int descriptor = open(words[1], O_RDONLY);
	pthread_t thread;
	char byte;

	memory = mmap(0, 1009 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(memory, 1009 * PAGE, MADV_NOHUGEPAGE);
	file = mmap(0, 17 * APART * PAGE, PROT_READ, MAP_SHARED, descriptor, 0);
	madvise(file, 17 * APART * PAGE, MADV_RANDOM);
	posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
	write(1, "ready\n", 6);
	read(0, &byte, 1);
	touch_memory(memory, 1000);
	touch_file(file, 17);
	pthread_create(&thread, 0, in_thread, 0);
	pthread_join(thread, 0);
	write(1, "done\n", 5);
	read(0, &byte, 1);
	return 0;
}
