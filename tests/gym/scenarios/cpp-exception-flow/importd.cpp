#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

__attribute__((noinline)) long parse_amount(const std::string &text)
{
	long amount = 0;

	for (char c : text) {
		if (c < '0' || c > '9')
			throw std::invalid_argument("no digit in " + text);
		amount = 10 * amount + c - '0';
	}
	return amount;
}

__attribute__((noinline)) long read_row(const std::vector<std::string> &fields)
{
	long sum = 0;

	for (const auto &field : fields) {
		try {
			sum += parse_amount(field);
		} catch (const std::invalid_argument &) {
			sum -= 1;
		}
	}
	return sum;
}

int main()
{
	std::vector<std::string> fields{"12", "n/a", "-", "4x", "?", "none", "", "n/a", "x", "7,5"};
	volatile long total = 0;

	for (int rows = 0;; rows++) {
		total = total + read_row(fields);
		if (rows % 2000 == 0)
			std::this_thread::sleep_for(std::chrono::milliseconds(5));
	}
}
