/* A leaf below 60 calls of one function, and a leaf inside a signal handler. */
#include <signal.h>
#include "truth.h"

#define DEPTH 60

static OWN void ref_bottom(void) { spin(600000); NOT_A_TAIL_CALL(); }
static OWN void ref_down(int calls)
{
	if (calls > 1)
		ref_down(calls - 1);
	else
		ref_bottom();
	NOT_A_TAIL_CALL();
}
static OWN void ref_in_handler(void) { spin(300000); NOT_A_TAIL_CALL(); }
static OWN void ref_handler(int number) { (void)number; ref_in_handler(); NOT_A_TAIL_CALL(); }
static OWN void ref_raises(void) { raise(SIGUSR1); NOT_A_TAIL_CALL(); }
static void descend(void) { ref_down(DEPTH); NOT_A_TAIL_CALL(); }

int main(int argc, char **argv)
{
	static char deep[DEPTH * sizeof("ref_down;") + sizeof("ref_bottom")];
	struct path paths[] = { { deep, descend }, { "ref_raises;ref_handler;ref_in_handler", ref_raises } };
	int at = 0;

	if (argc != 3)
		return 2;
	for (int i = 0; i < DEPTH; i++)
		at += sprintf(deep + at, "ref_down;");
	sprintf(deep + at, "ref_bottom");
	signal(SIGUSR1, ref_handler);
	run_paths(paths, 2, atoi(argv[2]));
	write_truth(argv[1], paths, 2);
}
