#include <fcntl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static char buffer[65536];
	int fd = open(argv[1], O_RDONLY);

	while (read(fd, buffer, 8192) > 0)
		usleep(40000);
}
