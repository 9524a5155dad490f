/* Six phases, each with one member that misses the caches; prints the share of
   CPU time of each.
   It is C and C++. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define COUNT (1L << 18)
#define ROUNDS 3

struct inner {
  int low, high;
  struct {
    long gap;
    double deep;
  } nest;
};

struct item {
  struct item *next;
  long before[7];
  long key;
  struct inner in;
  unsigned short flags;
  long between[6];
  long left;
  long behind[5];
};

struct row {
  long gap[12];
  unsigned value;
};

static struct row rows[COUNT];

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
  return at.tv_sec + at.tv_nsec * 1e-9;
}

__attribute__((noinline)) struct item *chase(struct item *at, long times) {
  while (times--)
    at = at->next;
  return at;
}

__attribute__((noinline)) long keys(struct item *items, unsigned *order) {
  long sum = 0;
  for (long i = 0; i < COUNT; i++)
    sum += items[order[i]].key;
  return sum;
}

__attribute__((noinline)) double deep(struct item **list) {
  double sum = 0;
  for (long i = 0; i < COUNT; i++) {
    struct inner *in = &list[i]->in;
    sum += in->nest.deep;
  }
  return sum;
}

__attribute__((noinline)) void fill(struct item *items, unsigned *order) {
  for (long i = 0; i < COUNT; i++)
    items[order[i]].left = i;
}

__attribute__((noinline)) long values(unsigned *order) {
  long sum = 0;
  for (long i = 0; i < COUNT; i++)
    sum += rows[order[i]].value;
  return sum;
}

__attribute__((noinline)) long flags(struct item **list) {
  long count = 0;
  for (long i = 0; i < COUNT; i++)
    count += list[i]->flags & 1;
  return count;
}

int main(void) {
  struct item *items = (struct item *)calloc(COUNT, sizeof(*items)),
              *at = items;
  struct item **list = (struct item **)calloc(COUNT, sizeof(*list));
  unsigned *order = (unsigned *)calloc(COUNT, sizeof(*order));
  double spent[6] = {0}, total = 0, start = now(), sum = 0;
  unsigned long seed = 88172645463325252UL;

  for (long i = 0; i < COUNT; i++)
    order[i] = (unsigned)i;
  for (long i = COUNT - 1; i > 0; i--) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    long other = (long)(seed % (unsigned long)i);
    unsigned one = order[i];
    order[i] = order[other], order[other] = one;
  }
  for (long i = 0; i < COUNT; i++) {
    list[i] = &items[order[i]];
    list[i]->next = &items[order[(i + 1) % COUNT]];
    rows[i].value = (unsigned)i;
  }
  while (now() - start < 4) {
    double times[7] = {now()};
    at = chase(at, COUNT / 12), times[1] = now();
    for (int i = 0; i < ROUNDS; i++)
      sum += (double)keys(items, order);
    times[2] = now();
    for (int i = 0; i < ROUNDS; i++)
      sum += deep(list);
    times[3] = now();
    for (int i = 0; i < ROUNDS; i++)
      fill(items, order);
    times[4] = now();
    for (int i = 0; i < ROUNDS; i++)
      sum += (double)values(order);
    times[5] = now();
    for (int i = 0; i < ROUNDS; i++)
      sum += (double)flags(list);
    times[6] = now();
    for (int i = 0; i < 6; i++)
      spent[i] += times[i + 1] - times[i], total += times[i + 1] - times[i];
  }
  const char *names[] = {"next", "key",   "in.nest.deep",
                         "left", "value", "flags"};
  for (int i = 0; i < 6; i++)
    printf("phase %s %.4f\n", names[i], spent[i] / total);
  return sum + (double)at->left < 0;
}
