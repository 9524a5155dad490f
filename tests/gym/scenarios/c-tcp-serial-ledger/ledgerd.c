#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static __attribute__((noinline)) void post_entry(int client)
{
	char entry[256];

	if (read(client, entry, sizeof(entry)) > 0) {
		usleep(45000);
		if (write(client, "posted\n", 7) < 0)
			return;
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	bind(listener, (struct sockaddr *)&address, sizeof(address));
	listen(listener, 64);
	for (;;) {
		int client = accept(listener, NULL, NULL);

		post_entry(client);
		close(client);
	}
}
