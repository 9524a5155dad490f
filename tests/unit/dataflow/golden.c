/* Functions that touch one member each, in the ways in which compilers reach
 * it. */
struct inner {
  short low, high;
};
struct node {
  long key;
  struct node *next;
  char text[40];
  long hot;
  int flags;
  struct inner in;
};
struct grid {
  int width, height;
  double cells[64];
  long totals[64];
  struct inner pairs[8];
};
typedef struct {
  long count;
  void *rest;
} bag;
union either {
  long number;
  struct node *node;
};

struct grid grid;
static struct node pool[64];
struct node *first;

#define APART __attribute__((noinline))

APART long walk_hot(struct node *node) {
  long sum = 0;
  for (; node; node = node->next)
    sum += node->hot;
  return sum;
}

APART void mark_flags(struct node *nodes, int count) {
  for (int i = 0; i < count; i++)
    nodes[i].flags |= i;
}

APART double sum_cells(struct grid *of) {
  double sum = 0;
  for (int i = 0; i < 64; i++)
    sum += of->cells[i];
  return sum;
}

APART long sum_totals(struct grid *of, int from, int to) {
  long sum = 0;
  for (int i = from; i < to; i++)
    sum += of->totals[i - 1];
  return sum;
}

APART long pool_keys(int count) {
  long sum = 0;
  for (int i = 0; i < count; i++)
    sum += pool[i].key;
  return sum;
}

APART int text_bytes(struct node *node, int from, int to) {
  int sum = 0;
  for (int i = from; i < to; i++)
    sum += node->text[i - 1];
  return sum;
}

APART void global_high(int count) {
  for (int i = 0; i < count; i++) {
    grid.pairs[3].high += i;
    __asm__ volatile("" ::: "memory");
  }
}

APART long nested_low(struct node **nodes, int count) {
  long sum = 0;
  for (int i = 0; i < count; i++)
    sum += nodes[i]->next->in.low;
  return sum;
}

APART long bag_count(const bag *bags, int count) {
  long sum = 0;
  while (count--)
    sum += bags++->count;
  return sum;
}

APART long backwards_key(struct node *end, int count) {
  long sum = 0;
  while (count--)
    sum += (--end)->key;
  return sum;
}

APART long union_number(union either *of) { return of->number * 3; }

APART long after_call_key(long (*call)(void)) {
  struct node *node = first;
  long value = call();
  return value + node->key;
}

APART long no_type(void *memory, long at) {
  return *(long *)((char *)memory + at);
}

/* A struct that begins with a part which others point to, as C++ classes begin
 * with their base. */
struct link {
  struct link *next;
};
struct item {
  struct link link;
  int value, weight;
  struct link *other;
};

APART long derived_value(struct link *link) {
  long sum = 0;
  for (; link; link = link->next)
    sum += ((struct item *)link)->value;
  return sum;
}

APART long derived_other(struct link *link) {
  return (long)((struct item *)link)->other->next;
}

APART long derived_address(struct link *link, long (*call)(void)) {
  int *value = &((struct item *)link)->weight;
  call();
  return *value + value[-1];
}

APART long stepped_links(struct link *links, int count) {
  long sum = 0;
  for (int i = 0; i < count; i++)
    sum += (long)links[i].next;
  return sum;
}

struct vector {
  float x, y, z, w;
};

APART float coordinate(struct vector *of, int i) { return (&of->x)[i]; }

struct cell {
  int x, y, z, more[13];
};
struct board {
  long before[4];
  struct cell cells[64];
};

APART long board_z(struct board *of) {
  long sum = 0;
  for (int i = 0; i < 400; i++)
    sum += of->cells[(i * 37) & 63].z;
  return sum;
}

struct packed {
  long head;
  unsigned small : 8, large : 24;
  unsigned tail;
};

APART long packed_tail(struct packed *of, int count) {
  long sum = 0;
  for (int i = 0; i < 64; i++)
    sum += of[(i * 37) & (count - 1)].tail;
  return sum;
}

APART long packed_large(struct packed *of, int count) {
  long sum = 0;
  for (int i = 0; i < 64; i++)
    sum += of[(i * 37) & (count - 1)].large;
  return sum;
}

struct flags {
  unsigned a : 1, b : 7, c : 9;
  unsigned char last;
};

APART long flags_last(struct flags *of, int count) {
  long sum = 0;
  for (int i = 0; i < count; i++) {
    sum += of[i].last;
    __asm__ volatile("" ::: "memory");
  }
  return sum;
}

APART long words_of(struct item *of, int i) { return ((long *)of)[i]; }

struct row {
  long count;
  struct node *items[1]; /* as many as were allocated */
};

APART long row_third(struct row *of) { return of->items[2]->key; }

static long one(void) { return 1; }

int main(int count, char **words) {
  (void)words;
  first = pool;
  for (int i = 0; i < 63; i++)
    pool[i].next = &pool[i + 1];
  mark_flags(pool, count);
  global_high(count);
  bag bags[4] = {{1, 0}};
  union either either = {3};
  struct node *nodes[1] = {pool};
  return (int)(walk_hot(pool) + sum_cells(&grid) + sum_totals(&grid, 1, 8) +
               pool_keys(count) + text_bytes(pool, 1, 8) +
               nested_low(nodes, 1) + bag_count(bags, 4) +
               backwards_key(pool + 8, 8) + union_number(&either) +
               after_call_key(one) + no_type(pool, 8));
}
