#include <arpa/inet.h>
#include <cstdlib>
#include <mutex>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

static std::mutex accounts, book;
static long total;

__attribute__((noinline)) void move_funds(long amount)
{
	std::lock_guard<std::mutex> first(accounts);
	total += amount;
	usleep(300000);
	std::lock_guard<std::mutex> second(book);
	total -= amount;
}

__attribute__((noinline)) long audit_book()
{
	std::lock_guard<std::mutex> first(book);
	usleep(300000);
	std::lock_guard<std::mutex> second(accounts);
	return total;
}

__attribute__((noinline)) void handle_balance(int client)
{
	char text[4096];
	if (read(client, text, sizeof(text)) > 0) {
		std::lock_guard<std::mutex> held(accounts);
		std::string answer = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + std::to_string(total);
		if (write(client, answer.data(), answer.size()) < 0)
			perror("write");
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
	std::thread([] {
		usleep(1000000);
		move_funds(7);
	}).detach();
	std::thread([] {
		usleep(1000000);
		audit_book();
	}).detach();
	for (;;)
		std::thread(handle_balance, accept(server, nullptr, nullptr)).detach();
}
