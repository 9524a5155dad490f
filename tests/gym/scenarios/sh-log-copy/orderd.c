#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static __attribute__((noinline)) int store_order(int fd, int number)
{
	char row[512];

	memset(row, 'a' + number % 26, sizeof(row));
	if (pwrite(fd, row, sizeof(row), (number % 4096) * sizeof(row)) < 0)
		return -1;
	return fdatasync(fd);
}

int main(int argc, char **argv)
{
	int fd = open(argv[1], O_CREAT | O_RDWR, 0644);

	for (int number = 0; fd >= 0; number++) {
		if (store_order(fd, number))
			return 1;
		usleep(20000);
	}
	return argc;
}
