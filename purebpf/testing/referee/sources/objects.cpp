/* A virtual method, a function that std::sort calls back, and one that throws through its caller. */
#include <algorithm>
#include <stdexcept>
#include <vector>
#include "truth.h"

struct Shape {
	virtual void ref_area() = 0;
	virtual ~Shape() = default;
};
struct Square : Shape {
	OWN void ref_area() override { spin(40000); NOT_A_TAIL_CALL(); }
};
static Shape *shape = new Square;
static OWN void ref_draw() { shape->ref_area(); NOT_A_TAIL_CALL(); }
static OWN bool ref_less(int a, int b) { spin(300); return a < b; }
static OWN void ref_sort()
{
	std::vector<int> numbers;
	for (int i = 0; i < 40; i++)
		numbers.push_back(i * 7919 % 41);
	std::sort(numbers.begin(), numbers.end(), ref_less);
	NOT_A_TAIL_CALL();
}
static OWN void ref_fails() { spin(20000); throw std::runtime_error("as planned"); }
static OWN void ref_catches()
{
	try {
		ref_fails();
	} catch (const std::exception &) {
		NOT_A_TAIL_CALL();
	}
}

int main(int argc, char **argv)
{
	struct path paths[] = {
		{ "ref_draw;ref_area", ref_draw },
		{ "ref_sort;ref_less", ref_sort },
		{ "ref_catches;ref_fails", ref_catches },
	};

	if (argc != 3)
		return 2;
	run_paths(paths, 3, atoi(argv[2]));
	write_truth(argv[1], paths, 3);
}
