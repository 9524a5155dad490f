#include <arpa/inet.h>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

struct Feed {
  int id;
  double price(const std::string &path) {
    if (path.back() == '7')
      throw std::runtime_error("no such share");
    return path.size() * 1.25;
  }
};

class FeedPool {
  std::mutex mutex_;
  std::condition_variable returned_;
  std::deque<std::unique_ptr<Feed>> free_;

public:
  FeedPool(int n) {
    for (int i = 0; i < n; i++)
      free_.push_back(std::make_unique<Feed>(Feed{i}));
  }
  __attribute__((noinline)) std::unique_ptr<Feed> takeFeed() {
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [this] { return !free_.empty(); });
    auto feed = std::move(free_.front());
    free_.pop_front();
    return feed;
  }
  void putBack(std::unique_ptr<Feed> feed) {
    {
      std::lock_guard lock(mutex_);
      free_.push_back(std::move(feed));
    }
    returned_.notify_one();
  }
};

static FeedPool feeds(4);

__attribute__((noinline)) std::string answerQuote(const std::string &path) {
  auto feed = feeds.takeFeed();
  double price = feed->price(path); // an exception loses the feed
  feeds.putBack(std::move(feed));
  return std::to_string(price);
}

static void serveClient(int client) {
  char text[2048];
  ssize_t n;
  while ((n = read(client, text, sizeof text - 1)) > 0) {
    text[n] = 0;
    std::string head(text), body;
    auto path = head.substr(4, head.find(' ', 4) - 4);
    try {
      body = answerQuote(path);
    } catch (const std::exception &error) {
      body = error.what();
    }
    std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    if (write(client, answer.data(), answer.size()) < 0)
      break;
  }
  close(client);
}

int main(int, char **words) {
  int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(std::atoi(words[1]));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bind(listener, (sockaddr *)&at, sizeof at);
  listen(listener, 64);
  for (;;) {
    int client = accept(listener, nullptr, nullptr);
    if (client >= 0)
      std::thread(serveClient, client).detach();
  }
}
