#include <arpa/inet.h>
#include <cstdlib>
#include <mutex>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

static std::once_flag once;
static std::string rates;
static int rates_port;

__attribute__((noinline)) std::string fetch_rates(int port)
{
	sockaddr_in at{};
	char text[4096];
	at.sin_family = AF_INET;
	at.sin_port = htons(port);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int sock = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(sock, reinterpret_cast<sockaddr *>(&at), sizeof(at)) || write(sock, "RATES\r\n", 7) != 7)
		return "";
	long count = read(sock, text, sizeof(text));
	close(sock);
	return std::string(text, count > 0 ? count : 0);
}

__attribute__((noinline)) const std::string &current_rates()
{
	std::call_once(once, [] { rates = fetch_rates(rates_port); });
	return rates;
}

__attribute__((noinline)) void handle_quote(int client)
{
	char text[4096];
	if (read(client, text, sizeof(text)) > 0) {
		std::string answer = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + current_rates();
		if (write(client, answer.data(), answer.size()) < 0)
			perror("write");
	}
	close(client);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 1;
	int one = 1, server = socket(AF_INET, SOCK_STREAM, 0);
	sockaddr_in at{};
	at.sin_family = AF_INET;
	at.sin_port = htons(atoi(argv[1]));
	rates_port = atoi(argv[2]);
	setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(server, reinterpret_cast<sockaddr *>(&at), sizeof(at)) || listen(server, 64))
		return 1;
	for (;;) {
		int client = accept(server, nullptr, nullptr);
		std::thread(handle_quote, client).detach();
	}
}
