#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static char block[65536];
long total;

__attribute__((noinline)) long send_block(int fd)
{
	long sent = write(fd, block, sizeof(block));

	total += sent;
	return sent;
}

int main(int argc, char **argv)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (argc < 2 || connect(fd, (struct sockaddr *)&to, sizeof(to)))
		return 1;
	while (send_block(fd) > 0)
		;
}
