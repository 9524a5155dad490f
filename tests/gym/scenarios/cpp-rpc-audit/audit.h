#pragma once
#include <mutex>
#include <string>

class AuditLog {
  public:
    AuditLog(int port, bool wait_for_reply);
    void record(const std::string &line);

  private:
    void ship(const std::string &line);
    std::mutex mutex_;
    int socket_ = -1;
    bool wait_for_reply_;
};
