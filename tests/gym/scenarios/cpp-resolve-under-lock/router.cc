#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

class ShardCache {
 public:
  std::string resolve_shard(const std::string &name) {
    std::lock_guard<std::mutex> guard(mutex_);
    auto found = addresses_.find(name);
    if (found != addresses_.end()) return found->second;
    addrinfo hints{}, *list = nullptr;
    hints.ai_family = AF_INET;
    int error = getaddrinfo(name.c_str(), "80", &hints, &list);
    if (error) return gai_strerror(error);
    freeaddrinfo(list);
    return addresses_[name] = "known";
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> addresses_;
};

static ShardCache cache;

static void route_request(int fd) {
  char text[2048];
  if (read(fd, text, sizeof(text)) > 0) {
    std::string body = cache.resolve_shard("shard" + std::to_string(rand() % 8) + ".store.internal.");
    std::string out = "HTTP/1.0 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    if (write(fd, out.data(), out.size()) < 0) perror("write");
  }
  close(fd);
}

int main(int, char **argv) {
  int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(atoi(argv[1]));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof(address)) || listen(listener, 64)) return 1;
  std::vector<std::thread> pool;
  for (int i = 0; i < 6; i++)
    pool.emplace_back([=] {
      for (;;) route_request(accept(listener, nullptr, nullptr));
    });
  for (auto &thread : pool) thread.join();
}
