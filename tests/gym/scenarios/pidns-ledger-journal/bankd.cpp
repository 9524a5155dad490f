#include <arpa/inet.h>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

class Journal;

class Ledger {
public:
  std::mutex guard;
  long total = 0;
  __attribute__((noinline)) void postBooking(Journal &journal, long cents);
};

class Journal {
public:
  std::mutex guard;
  std::vector<long> lines;
  __attribute__((noinline)) void rotatePages(Ledger &ledger);
};

void Ledger::postBooking(Journal &journal, long cents) {
  std::lock_guard hold(guard);
  total += cents;
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::lock_guard write(journal.guard);
  journal.lines.push_back(total);
}

void Journal::rotatePages(Ledger &ledger) {
  std::lock_guard hold(guard);
  lines.clear();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::lock_guard read(ledger.guard);
  lines.push_back(ledger.total);
}

int main(int, char **words) {
  static Ledger ledger;
  static Journal journal;
  int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(std::atoi(words[1]));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bind(listener, (sockaddr *)&at, sizeof at);
  listen(listener, 64);
  std::thread([] {
    for (;;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(40));
      journal.rotatePages(ledger);
    }
  }).detach();
  for (;;) {
    int client = accept(listener, nullptr, nullptr);
    if (client < 0)
      continue;
    std::thread([client] {
      char text[2048];
      while (read(client, text, sizeof text) > 0) {
        ledger.postBooking(journal, 5);
        std::string answer = "HTTP/1.1 204 No Content\r\n\r\n";
        if (write(client, answer.data(), answer.size()) < 0)
          break;
      }
      close(client);
    }).detach();
  }
}
