#include <arpa/inet.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *plugin;

static __attribute__((noinline)) int run_filters(const char *text)
{
	int sum = text[0];

	for (int line = 0; line < 40; line++) {
		void *library = dlopen(plugin, RTLD_NOW);
		int (*filter)(int) = (int (*)(int))dlsym(library, "filter_line");

		sum += filter(line);
		dlclose(library);
	}
	return sum;
}

int main(int argc, char **argv)
{
	int one = 1, server = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[1])) };
	char text[4096];

	setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (argc < 2 || bind(server, (void *)&at, sizeof(at)) || listen(server, 64))
		return 1;
	plugin = argv[2];
	for (;;) {
		int client = accept(server, NULL, NULL);

		if (read(client, text, sizeof(text)) > 0 && run_filters(text))
			dprintf(client, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n");
		close(client);
	}
}
