#include <arpa/inet.h>
#include <netdb.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

struct Carrier {
	const char *host;

	__attribute__((noinline)) bool findDepot(std::string &address) const
	{
		addrinfo hints{}, *found = nullptr;
		hints.ai_family = AF_INET;
		hints.ai_socktype = SOCK_STREAM;
		if (getaddrinfo(host, nullptr, &hints, &found))
			return false;
		char text[INET_ADDRSTRLEN];
		inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in *>(found->ai_addr)->sin_addr, text, sizeof text);
		address = text;
		freeaddrinfo(found);
		return true;
	}
};

static void serve(int client)
{
	static const Carrier carrier{"depot.carrier.example"};
	char request[4096];
	while (read(client, request, sizeof request) > 0) {
		std::string depot = "none";
		carrier.findDepot(depot);
		std::string text = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(depot.size()) + "\r\n\r\n" + depot;
		if (write(client, text.data(), text.size()) < 0)
			break;
	}
	close(client);
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
	for (;;)
		std::thread(serve, accept(listener, nullptr, nullptr)).detach();
}
