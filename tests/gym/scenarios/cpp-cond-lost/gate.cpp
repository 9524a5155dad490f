#include <arpa/inet.h>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

static std::mutex mutex;
static std::condition_variable freed;
static int permits = 1;

__attribute__((noinline)) void acquire_permit() {
    std::unique_lock lock(mutex);
    while (permits == 0)
        freed.wait_for(lock, std::chrono::seconds(2));
    permits--;
}
__attribute__((noinline)) void release_permit() {
    std::unique_lock lock(mutex);
    permits++;  // nobody is notified
}
__attribute__((noinline)) void handle_request(int fd) {
    char buffer[2048];
    while (read(fd, buffer, sizeof buffer) > 0) {
        acquire_permit();
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        release_permit();
        std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        if (write(fd, answer.data(), answer.size()) < 0) break;
    }
    close(fd);
}
int main(int, char **argv) {
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(atoi(argv[1]));
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof address);
    listen(listener, 64);
    for (;;) std::thread(handle_request, accept(listener, nullptr, nullptr)).detach();
}
