#include <arpa/inet.h>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

static int tryListen(int port)
{
	sockaddr_in at{};
	at.sin_family = AF_INET;
	at.sin_port = htons(port);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(fd, reinterpret_cast<sockaddr *>(&at), sizeof at) || listen(fd, 64)) {
		std::fprintf(stderr, "listen: %s\n", std::strerror(errno));
		close(fd);
		return -1;
	}
	return fd;
}

int main(int, char **argv)
{
	int fd;
	while ((fd = tryListen(std::stoi(argv[1]))) < 0)
		std::this_thread::sleep_for(std::chrono::milliseconds(500));
	for (;;)
		close(accept(fd, nullptr, nullptr));
}
