#include <arpa/inet.h>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

struct Vault {
	std::mutex doors;
	long opened = 0;

	__attribute__((noinline)) long open()
	{
		std::lock_guard<std::mutex> held(doors);
		usleep(30000);
		return ++opened;
	}
};

static Vault vault;

__attribute__((noinline)) static void serve_connection(int client)
{
	char text[4096];
	while (read(client, text, sizeof(text)) > 0) {
		long number = vault.open();
		dprintf(client, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n%06ld\n", number % 1000000);
	}
	close(client);
}

int main(int argc, char **argv)
{
	int one = 1, server = socket(AF_INET, SOCK_STREAM, 0);
	sockaddr_in at{};
	at.sin_family = AF_INET;
	at.sin_port = htons(argc > 1 ? atoi(argv[1]) : 0);
	setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(server, reinterpret_cast<sockaddr *>(&at), sizeof(at)) || listen(server, 64))
		return 1;
	for (;;)
		std::thread(serve_connection, accept(server, nullptr, nullptr)).detach();
}
