#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace fs = std::filesystem;

static std::string readAll(const fs::path &path)
{
	std::ifstream in(path, std::ios::binary);
	return {std::istreambuf_iterator<char>(in), {}};
}

static void mergeFolder(const fs::path &folder)
{
	std::ofstream out(folder / "merged.part", std::ios::binary);
	for (const auto &entry : fs::directory_iterator(folder / "in"))
		out << readAll(entry.path());
	out.close();
	fs::rename(folder / "merged.part", folder / "merged");
}

int main(int, char **argv)
{
	for (;;) {
		mergeFolder(argv[1]);
		std::this_thread::sleep_for(std::chrono::milliseconds(700));
	}
}
