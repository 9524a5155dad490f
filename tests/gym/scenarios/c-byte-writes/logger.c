#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int fd;

__attribute__((noinline)) void log_char(char c)
{
	write(fd, &c, 1);
}

int main(int argc, char **argv)
{
	const char *text = "order 17 was stored and nobody noticed\n";

	fd = open(argc > 1 ? argv[1] : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	for (;;) {
		for (const char *c = text; *c; c++)
			log_char(*c);
		lseek(fd, 0, SEEK_SET);
		usleep(200);
	}
}
