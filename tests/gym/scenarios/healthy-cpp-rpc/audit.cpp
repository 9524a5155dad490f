#include "audit.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

AuditLog::AuditLog(int port, bool wait_for_reply) : wait_for_reply_(wait_for_reply) {
    socket_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connect(socket_, reinterpret_cast<sockaddr *>(&address), sizeof address);
}

void AuditLog::ship(const std::string &line) {
    std::string text = "POST /audit HTTP/1.1\r\nX-Line: " + line + "\r\n\r\n";
    (void)!write(socket_, text.data(), text.size());
    char answer[512];
    (void)!read(socket_, answer, sizeof answer);
}

void AuditLog::record(const std::string &line) {
    std::lock_guard<std::mutex> guard(mutex_);
    if (wait_for_reply_)
        ship(line);
    else {
        static thread_local std::string buffer;
        buffer += line;
        if (buffer.size() > 4096)
            buffer.clear();
    }
}
