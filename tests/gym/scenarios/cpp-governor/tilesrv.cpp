#include <arpa/inet.h>
#include <cmath>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

struct Tile {
	int zoom;
	std::vector<float> heights;
};

__attribute__((noinline)) std::string shadeTile(const Tile &tile)
{
	double sum = 0;
	for (size_t i = 1; i < tile.heights.size(); i++)
		sum += std::atan2(tile.heights[i] - tile.heights[i - 1], 1.0f / tile.zoom);
	return std::to_string(sum);
}

static void serveClient(int client, const Tile &tile)
{
	char request[4096];
	ssize_t got;
	while ((got = read(client, request, sizeof request)) > 0) {
		std::string body = shadeTile(tile);
		std::string head = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
		if (write(client, head.data(), head.size()) < 0)
			break;
	}
	close(client);
}

int main(int, char **argv)
{
	Tile tile{7, std::vector<float>(20000, 1.5f)};
	for (size_t i = 0; i < tile.heights.size(); i++)
		tile.heights[i] = std::sin(i * 0.01f);
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	sockaddr_in at{};
	at.sin_family = AF_INET;
	at.sin_port = htons(std::stoi(argv[1]));
	if (bind(listener, reinterpret_cast<sockaddr *>(&at), sizeof at) || listen(listener, 64))
		return 1;
	for (;;) {
		int client = accept(listener, nullptr, nullptr);
		std::thread([client, &tile] { serveClient(client, tile); }).detach();
	}
}
