#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static long total;

__attribute__((noinline)) static void read_leaf(int file)
{
	static char leaf[65536];
	total += pread(file, leaf, sizeof leaf, (off_t)(rand() % 2500) * 65536);
}

int main(int argc, char **argv)
{
	int file = open(argv[1], O_RDONLY);
	for (;;)
		read_leaf(file);
}
