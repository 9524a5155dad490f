#include <arpa/inet.h>
#include <cstdlib>
#include <list>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <mutex>
#include <unistd.h>
#include <unordered_map>
#include <vector>

class ThumbCache {
  public:
    const std::vector<char> &load(const std::string &key) {
        std::lock_guard<std::mutex> guard(mutex_);
        auto found = entries_.find(key);
        if (found != entries_.end())
            return found->second;
        order_.push_front(key);
        if (order_.size() > 100) {
            entries_.erase(order_.front() + ".jpg");
            order_.pop_back();
        }
        return entries_.emplace(key, shrink(key)).first->second;
    }

  private:
    std::vector<char> shrink(const std::string &key) { return std::vector<char>(40000, key.back()); }

    std::mutex mutex_;
    std::list<std::string> order_;
    std::unordered_map<std::string, std::vector<char>> entries_;
};

static ThumbCache cache;

static void serve(int client) {
    char buffer[2048];
    ssize_t size;
    while ((size = read(client, buffer, sizeof buffer)) > 0) {
        std::string line(buffer, size);
        auto &thumb = cache.load(line.substr(4, line.find(' ', 4) - 4));
        std::string out = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + std::string(1, thumb[0]);
        (void)!write(client, out.data(), out.size());
    }
    close(client);
}

int main(int, char **argv) {
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(atoi(argv[1]));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof address);
    listen(listener, 128);
    for (;;) {
        int client = accept(listener, nullptr, nullptr);
        std::thread(serve, client).detach();
    }
}
