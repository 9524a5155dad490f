#include <arpa/inet.h>
#include <cstdlib>
#include <cstring>
#include <future>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

struct Image {
    int width, height;
    std::vector<unsigned char> pixels;
};

static Image load_image(int seed) {
    Image image{3000, 2400, {}};
    image.pixels.assign(3000ul * 2400, seed & 255);
    return image;
}

static Image blur_image(const Image &source) {
    Image target{source.width, source.height, {}};
    target.pixels.resize(source.pixels.size());
    for (size_t i = 4096; i < source.pixels.size(); i += 4096)
        target.pixels[i] = (source.pixels[i] + source.pixels[i - 4096]) / 2;
    return target;
}

static size_t convert_request(int seed) {
    Image first = load_image(seed);
    Image second = blur_image(first);
    Image third = blur_image(second);
    return third.pixels[8192] + second.pixels.size();
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
        std::thread([client] {
            char buffer[2048];
            while (read(client, buffer, sizeof buffer) > 0) {
                std::string body = std::to_string(convert_request(buffer[5]));
                std::string out = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
                (void)!write(client, out.data(), out.size());
            }
            close(client);
        }).detach();
    }
}
