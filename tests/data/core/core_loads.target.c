// Where core_loads.bpf.c finds its fields.
struct sized {
	char pad[16];
	unsigned int narrowed;
	unsigned long widened;
	long signed_widened;
	const char *pointer;
	unsigned int array[3];
	_Bool same;
};

struct sized sized;
