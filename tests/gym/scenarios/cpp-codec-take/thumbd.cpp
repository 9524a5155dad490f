#include <arpa/inet.h>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <vector>

struct Codec {
    int fd;
    std::string encode(const std::string &image) {
        char out[512];
        if (write(fd, image.data(), image.size()) < 0)
            return "";
        ssize_t size = read(fd, out, sizeof out);
        return std::string(out, size > 0 ? size : 0);
    }
};

template <class T> class Pool {
  public:
    void add(T *item) { put(item); }
    __attribute__((noinline)) T *take() {
        std::unique_lock<std::mutex> lock(mutex_);
        while (items_.empty())
            ready_.wait(lock);
        T *item = items_.front();
        items_.pop_front();
        return item;
    }
    void put(T *item) {
        std::lock_guard<std::mutex> guard(mutex_);
        items_.push_back(item);
        ready_.notify_one();
    }

  private:
    std::mutex mutex_;
    std::condition_variable ready_;
    std::deque<T *> items_;
};

static Pool<Codec> codecs;

__attribute__((noinline)) static std::string thumbnail() {
    Codec *codec = codecs.take();
    std::string out = codec->encode("one image");
    codecs.put(codec);
    return out;
}

static void session(int client) {
    char buffer[2048];
    while (read(client, buffer, sizeof buffer) > 0) {
        std::string body = thumbnail();
        std::string out = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
        if (write(client, out.data(), out.size()) < 0)
            break;
    }
    close(client);
}

static void idle_janitor() {
    for (;;)
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
}

int main(int, char **argv) {
    for (int i = 0; i < 2; i++) {
        auto *codec = new Codec{socket(AF_UNIX, SOCK_STREAM, 0)};
        sockaddr_un to{};
        to.sun_family = AF_UNIX;
        strncpy(to.sun_path, argv[2], sizeof to.sun_path - 1);
        while (connect(codec->fd, reinterpret_cast<sockaddr *>(&to), sizeof to) < 0)
            usleep(50000);
        codecs.add(codec);
    }
    std::thread(idle_janitor).detach();
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
