#include <arpa/inet.h>
#include <chrono>
#include <cstdint>
#include <string>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

class Licences {
public:
	explicit Licences(unsigned count) : fd(eventfd(count, EFD_SEMAPHORE)) {}

	__attribute__((noinline)) void obtain()
	{
		std::uint64_t one;
		if (read(fd, &one, sizeof one) != sizeof one)
			std::abort();
	}

	void giveBack()
	{
		std::uint64_t one = 1;
		if (write(fd, &one, sizeof one) != sizeof one)
			std::abort();
	}

private:
	int fd;
};

static Licences licences(2);

__attribute__((noinline)) static int recognisePage()
{
	std::this_thread::sleep_for(std::chrono::milliseconds(110)); // the engine's own process
	return 42;
}

__attribute__((noinline)) static std::string scanDocument()
{
	licences.obtain();
	int words = recognisePage();
	licences.giveBack();
	return std::to_string(words);
}

int main(int, char **argv)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	sockaddr_in at{};
	at.sin_family = AF_INET;
	at.sin_port = htons(std::stoi(argv[1]));
	if (bind(listener, reinterpret_cast<sockaddr *>(&at), sizeof at) || listen(listener, 64))
		return 1;
	for (;;) {
		int client = accept(listener, nullptr, nullptr);
		std::thread([client] {
			char request[2048];
			while (read(client, request, sizeof request) > 0) {
				std::string body = scanDocument();
				std::string text = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
				if (write(client, text.data(), text.size()) < 0)
					break;
			}
			close(client);
		}).detach();
	}
}
