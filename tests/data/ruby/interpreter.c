// The parts of a Ruby interpreter that say where its data are, as a compiler makes them.
#include <stddef.h>
const char ruby_version[] = "3.4.9";
struct thread { void *node, *ractor, *self; };
struct machine { char pad[0x210]; struct thread *main; };
struct machine *ruby_current_vm_ptr;
__thread void *another = (void *)1;
__thread struct thread **ruby_current_ec;
static struct { unsigned last; void *names; void **ids; } NAMES = { 1 };
void *ruby_element(void **array, long at) { return array[at]; }
static __attribute__((noinline)) void *entry(unsigned number, int kind)
{
	void *result = NULL;
	if (number && number <= NAMES.last)
		result = ruby_element(NAMES.ids, number / 512 + kind);
	return result == (void *)8 ? NULL : result;
}
void *rb_thread_current(void) { return ruby_current_ec[6]->self; }
void *rb_thread_main(void)
{
	struct machine *machine = ruby_current_vm_ptr;
	return machine ? machine->main->self : NULL;
}
void *rb_id2str(unsigned long id) { return entry(id > 169 ? id >> 4 : id, 0); }
void *rb_id2sym(unsigned long id) { return entry(id, 1); }
void *ruby_set_names(unsigned last, void **ids) { NAMES.last = last; NAMES.ids = ids; return NAMES.names; }
int main(void) { return 0; }
