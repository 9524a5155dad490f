#include <arpa/inet.h>
#include <fcntl.h>
#include <string>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

class Loop {
public:
	Loop(int port, const char *path) : log(open(path, O_CREAT | O_APPEND | O_WRONLY, 0644))
	{
		int one = 1;
		listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
		setsockopt(listener, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
		sockaddr_in at{};
		at.sin_family = AF_INET;
		at.sin_port = htons(port);
		if (bind(listener, reinterpret_cast<sockaddr *>(&at), sizeof at) || listen(listener, 256))
			_exit(1);
		poller = epoll_create1(0);
		timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
		itimerspec each{{1, 0}, {1, 0}};
		timerfd_settime(timer, 0, &each, nullptr);
		watch(listener);
		watch(timer);
	}

	void run()
	{
		epoll_event events[32];
		for (;;) {
			int n = epoll_wait(poller, events, 32, -1);
			for (int i = 0; i < n; i++)
				handle(events[i].data.fd);
		}
	}

private:
	void watch(int fd)
	{
		epoll_event event{};
		event.events = EPOLLIN;
		event.data.fd = fd;
		epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
	}

	void handle(int fd)
	{
		char text[4096];
		if (fd == listener) {
			int client = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK);
			if (client >= 0)
				watch(client);
			return;
		}
		ssize_t got = read(fd, text, sizeof text);
		if (fd == timer) {
			std::string line = "served " + std::to_string(served) + "\n";
			if (write(log, line.data(), line.size()) < 0)
				_exit(1);
			return;
		}
		if (got <= 0) {
			close(fd);
			return;
		}
		served++;
		static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n";
		if (write(fd, answer, sizeof answer - 1) < 0)
			close(fd);
	}

	int listener, poller, timer, log;
	long served = 0;
};

} // namespace

int main(int, char **argv)
{
	std::vector<std::thread> threads;
	for (int i = 0; i < 4; i++)
		threads.emplace_back([argv] { Loop(std::stoi(argv[1]), argv[2]).run(); });
	for (auto &thread : threads)
		thread.join();
}
