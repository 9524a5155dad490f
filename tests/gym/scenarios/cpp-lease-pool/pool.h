#pragma once
#include <condition_variable>
#include <mutex>
#include <vector>

/** Connections to the catalogue, each of which one thread uses at a time. */
class ConnectionPool {
  public:
    ConnectionPool(int port, int size);
    int acquire();
    void release(int fd);

  private:
    std::mutex mutex_;
    std::condition_variable freed_;
    std::vector<int> idle_;
};
