#include <arpa/inet.h>
#include <memory>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

class SessionStore {
public:
	__attribute__((noinline)) size_t openSession()
	{
		sessions.push_back(std::make_unique<std::vector<char>>(900000, 'x'));
		return sessions.size();
	}

private:
	std::vector<std::unique_ptr<std::vector<char>>> sessions;
};

int main(int, char **argv)
{
	SessionStore store;
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	sockaddr_in at{};
	at.sin_family = AF_INET;
	at.sin_port = htons(std::stoi(argv[1]));
	if (bind(listener, reinterpret_cast<sockaddr *>(&at), sizeof at) || listen(listener, 64))
		return 1;
	for (;;) {
		char request[2048];
		int client = accept(listener, nullptr, nullptr);
		if (read(client, request, sizeof request) > 0) {
			std::string body = std::to_string(store.openSession());
			std::string text = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
			if (write(client, text.data(), text.size()) < 0)
				return 2;
		}
		close(client);
	}
}
