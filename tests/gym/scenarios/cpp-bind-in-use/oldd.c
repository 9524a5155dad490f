#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[1])) };
	int server = socket(AF_INET, SOCK_STREAM, 0);

	if (argc < 2 || bind(server, (void *)&at, sizeof(at)) || listen(server, 8))
		return 1;
	for (;;)
		close(accept(server, NULL, NULL));
}
