#include <arpa/inet.h>
#include <condition_variable>
#include <cstdlib>
#include <fcntl.h>
#include <mutex>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

class Turnstile {
  public:
    __attribute__((noinline)) unsigned enter() {
        std::unique_lock<std::mutex> lock(mutex_);
        unsigned mine = next_++;
        moved_.wait(lock, [&] { return serving_ == mine; });
        return mine;
    }
    void leave() {
        std::lock_guard<std::mutex> guard(mutex_);
        serving_++;
        moved_.notify_all();
    }

  private:
    std::mutex mutex_;
    std::condition_variable moved_;
    unsigned next_ = 0, serving_ = 0;
};

static Turnstile turnstile;
static int ledger;

__attribute__((noinline)) static void settle_entry() {
    std::vector<char> page(262144, 'e');
    if (pwrite(ledger, page.data(), page.size(), 0) < 0)
        abort();
    usleep(15000);
    fdatasync(ledger);
}

static std::string book() {
    unsigned number = turnstile.enter();
    settle_entry();
    turnstile.leave();
    return std::to_string(number);
}

static void session(int client) {
    char buffer[2048];
    while (read(client, buffer, sizeof buffer) > 0) {
        std::string body = book();
        std::string out = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
        if (write(client, out.data(), out.size()) < 0)
            break;
    }
    close(client);
}

int main(int, char **argv) {
    ledger = open(argv[2], O_RDWR | O_CREAT, 0600);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(atoi(argv[1]));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof address);
    listen(listener, 128);
    for (;;)
        std::thread(session, accept(listener, nullptr, nullptr)).detach();
}
