/* One leaf with two callers, and four leaves with shares of 8 to 50 percent. */
#include "truth.h"

static OWN void ref_leaf_large(void) { spin(60000); NOT_A_TAIL_CALL(); }
static OWN void ref_leaf_middle(void) { spin(30000); NOT_A_TAIL_CALL(); }
static OWN void ref_leaf_small(void) { spin(10000); NOT_A_TAIL_CALL(); }
static OWN void ref_shared(void) { spin(10000); NOT_A_TAIL_CALL(); }
static OWN void ref_one(void) { ref_leaf_large(); NOT_A_TAIL_CALL(); }
static OWN void ref_two(void) { ref_leaf_middle(); NOT_A_TAIL_CALL(); }
static OWN void ref_three(void) { ref_shared(); NOT_A_TAIL_CALL(); }
static OWN void ref_four(void) { ref_shared(); NOT_A_TAIL_CALL(); }

int main(int argc, char **argv)
{
	struct path paths[] = {
		{ "ref_one;ref_leaf_large", ref_one },   { "ref_two;ref_leaf_middle", ref_two },
		{ "ref_leaf_small", ref_leaf_small },    { "ref_three;ref_shared", ref_three },
		{ "ref_four;ref_shared", ref_four },
	};

	if (argc != 3)
		return 2;
	run_paths(paths, 5, atoi(argv[2]));
	write_truth(argv[1], paths, 5);
}
