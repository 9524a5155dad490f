#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

__attribute__((noinline)) int check_peer(int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (!connect(fd, (void *)&a, sizeof(a)))
		return fd; // kept
	close(fd);
	return -1;
}

int main(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(7400)};
	int server = socket(AF_INET, SOCK_STREAM, 0);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(server, (void *)&a, sizeof(a)) || listen(server, 64))
		return 1;
	for (;;) {
		if (check_peer(7400) < 0)
			usleep(20000);
		else
			accept(server, 0, 0);
	}
}
