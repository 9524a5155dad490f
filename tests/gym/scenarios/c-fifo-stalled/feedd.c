#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static char quote[4096];

static __attribute__((noinline)) void publish_quote(int fd)
{
	memset(quote, 'q', sizeof(quote));
	if (write(fd, quote, sizeof(quote)) < 0)
		_exit(1);
}

int main(int argc, char **argv)
{
	int fd = open(argv[1], O_WRONLY);

	for (;;) {
		publish_quote(fd);
		usleep(500);
	}
}
