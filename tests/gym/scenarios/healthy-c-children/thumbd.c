#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static __attribute__((noinline)) int run_helper(void)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		for (int fd = 3; fd < 64; fd++)
			close(fd);
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	waitpid(child, &status, 0);
	return status;
}

int main(int argc, char **argv)
{
	int one = 1, server = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[1])) };
	char text[4096];

	setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (argc < 2 || bind(server, (void *)&at, sizeof(at)) || listen(server, 64))
		return 1;
	for (;;) {
		int client = accept(server, NULL, NULL);

		if (read(client, text, sizeof(text)) > 0 && run_helper() == 0)
			dprintf(client, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n");
		close(client);
	}
}
