// Datagrams to itself, each of which is received in a softirq.
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int count, char **words)
{
	struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(here);
	long turns = count > 1 ? atol(words[1]) : 20000;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	char byte = 0;

	if (bind(fd, (void *)&here, size) || getsockname(fd, (void *)&here, &size))
		return 1;
	for (long i = 0; i < turns; i++)
		if (sendto(fd, &byte, 1, 0, (void *)&here, size) != 1 || read(fd, &byte, 1) != 1)
			return 1;
	return 0;
}
