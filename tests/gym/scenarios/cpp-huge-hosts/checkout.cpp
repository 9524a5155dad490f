#include <arpa/inet.h>
#include <netdb.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace checkout {

class TaxService {
public:
	explicit TaxService(std::string name) : name(std::move(name)) {}

	__attribute__((noinline)) std::string locate() const
	{
		addrinfo hints{}, *list = nullptr;
		hints.ai_family = AF_INET;
		hints.ai_socktype = SOCK_STREAM;
		if (getaddrinfo(name.c_str(), "8080", &hints, &list))
			return "unknown";
		char text[64];
		inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in *>(list->ai_addr)->sin_addr, text, sizeof text);
		freeaddrinfo(list);
		return text;
	}

private:
	std::string name;
};

__attribute__((noinline)) std::string payOrder(const TaxService &tax)
{
	return "paid; tax by " + tax.locate() + "\n";
}

} // namespace checkout

int main(int, char **argv)
{
	checkout::TaxService tax("tax.internal");
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	sockaddr_in at{};
	at.sin_family = AF_INET;
	at.sin_port = htons(std::stoi(argv[1]));
	if (bind(listener, reinterpret_cast<sockaddr *>(&at), sizeof at) || listen(listener, 64))
		return 1;
	for (;;) {
		int client = accept(listener, nullptr, nullptr);
		std::thread([client, &tax] {
			char request[4096];
			while (read(client, request, sizeof request) > 0) {
				std::string body = checkout::payOrder(tax);
				std::string all = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
				if (write(client, all.data(), all.size()) < 0)
					break;
			}
			close(client);
		}).detach();
	}
}
