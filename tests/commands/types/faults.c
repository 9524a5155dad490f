/* Faults at one member of each page: 4,001 times, a prime number. */
#define _GNU_SOURCE
#include <sys/mman.h>

struct page {
  long first;
  char gap[4080];
  long touched;
};

__attribute__((noinline)) void fill(struct page *pages, int count) {
  for (int i = 0; i < count; i++)
    pages[i].touched = i;
}

int main(void) {
  long size = 4001 * sizeof(struct page);
  void *memory =
      mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  madvise(memory, size, MADV_NOHUGEPAGE);
  fill(memory, 4001);
  return 0;
}
