#include <arpa/inet.h>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <queue>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

static std::mutex log_lock, queue_lock;
static std::condition_variable filled;
static std::queue<int> clients;

__attribute__((noinline)) void write_log(const std::string &line)
{
	std::lock_guard<std::mutex> held(log_lock);
	if (write(2, line.data(), line.size()) < 0)
		abort();
}

__attribute__((noinline)) void serve_order(int client)
{
	char text[4096];
	long count = read(client, text, sizeof(text));
	if (count > 0) {
		write_log("order " + std::string(700, 'x') + "\n");
		const char answer[] = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok\n";
		if (write(client, answer, sizeof(answer) - 1) < 0)
			abort();
	}
	close(client);
}

__attribute__((noinline)) int idle_worker()
{
	std::unique_lock<std::mutex> held(queue_lock);
	filled.wait(held, [] { return !clients.empty(); });
	int client = clients.front();
	clients.pop();
	return client;
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
	for (int i = 0; i < 6; i++)
		std::thread([] {
			for (;;)
				serve_order(idle_worker());
		}).detach();
	for (;;) {
		int client = accept(server, nullptr, nullptr);
		std::lock_guard<std::mutex> held(queue_lock);
		clients.push(client);
		filled.notify_one();
	}
}
