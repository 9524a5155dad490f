#include <arpa/inet.h>
#include <cstdio>
#include <cstdlib>
#include <malloc.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

__attribute__((noinline)) long resize_image(int number)
{
	std::vector<std::vector<char>> rows;
	long sum = 0;

	for (int row = 0; row < 400; row++)
		rows.emplace_back(60000, static_cast<char>(number + row));
	for (auto &row : rows)
		sum += row[17];
	return sum;
}

__attribute__((noinline)) int release_memory()
{
	return malloc_trim(0);
}

int main(int argc, char **argv)
{
	int one = 1, server = socket(AF_INET, SOCK_STREAM, 0);
	sockaddr_in at{};
	char text[4096];
	at.sin_family = AF_INET;
	at.sin_port = htons(argc > 1 ? atoi(argv[1]) : 0);
	setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(server, reinterpret_cast<sockaddr *>(&at), sizeof(at)) || listen(server, 64))
		return 1;
	for (int number = 0;; number++) {
		int client = accept(server, nullptr, nullptr);
		if (read(client, text, sizeof(text)) > 0) {
			long sum = resize_image(number);
			dprintf(client, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n%ld %d\n", sum, release_memory());
		}
		close(client);
	}
}
