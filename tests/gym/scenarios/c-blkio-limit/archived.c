#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define CHUNK 65536
#define SIZE (64L << 20)

static __attribute__((noinline)) long read_chunk(int file, char *chunk, long at)
{
	long count = pread(file, chunk, CHUNK, at);

	posix_fadvise(file, at, CHUNK, POSIX_FADV_DONTNEED);
	return count;
}

int main(int argc, char **argv)
{
	static char chunk[CHUNK];
	int file = open(argc > 1 ? argv[1] : "/dev/null", O_RDONLY);
	volatile long sum = 0;

	fsync(file);
	posix_fadvise(file, 0, SIZE, POSIX_FADV_DONTNEED);
	posix_fadvise(file, 0, SIZE, POSIX_FADV_RANDOM);
	for (;;)
		sum = sum + read_chunk(file, chunk, (rand() % (SIZE / CHUNK)) * CHUNK);
}
