/* Which instructions ran how often: the figures of `--tool count`, as a tool of one's own.
     cc -shared -fPIC $(pkg-config --cflags citcat-tool) tool_mix.c -o mix.so
     citcat analyze boot.citcat --tool ./mix.so */
#include <citcat_tool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1024 };

struct mix {
  struct { char name[24]; uint64_t count; } of[MOST]; /* by mnemonic */
  uint32_t count;
  uint64_t iterations;  /* of REPs, behind the first */
  uint64_t interrupted; /* executions that did not complete, and were begun again */
};

/* What a piece of code adds each time it runs: so many of these. */
struct piece {
  struct piece *next; /* of the tool's */
  uint32_t count;
  uint32_t of[];
};

struct tool {
  struct mix mix; /* what is saved */
  struct piece *pieces;
};

static void *make(const citcat_tool_setup *setup) {
  (void)setup;
  return calloc(1, sizeof(struct tool));
}

static void destroy(void *tool) {
  struct piece *p = ((struct tool *)tool)->pieces;
  while (p != NULL) {
    struct piece *next = p->next;
    free(p);
    p = next;
  }
  free(tool);
}

static uint32_t find(struct mix *m, const char *name) {
  uint32_t i = 0;
  while (i < m->count && strcmp(m->of[i].name, name) != 0) ++i;
  if (i == m->count && i < MOST - 1) strncpy(m->of[m->count++].name, name, sizeof m->of[i].name - 1);
  return i;
}

static void *code(void *tool, const citcat_block *block) {
  struct tool *t = tool;
  struct piece *p = malloc(sizeof *p + block->count * sizeof p->of[0]);
  if (p == NULL) abort();
  p->next = t->pieces;
  t->pieces = p;
  p->count = block->count;
  for (uint32_t i = 0; i < block->count; ++i)
    p->of[i] = find(&t->mix, citcat_instruction_at(block, i)->mnemonic);
  return p;
}

static void counted(void *tool, void *mine, uint64_t executions) {
  struct mix *m = tool;
  const struct piece *p = mine;
  for (uint32_t i = 0; i < p->count; ++i) m->of[p->of[i]].count += executions;
}

static void iterated(void *tool, void *mine, uint64_t begun, uint64_t further) {
  ((struct mix *)tool)->iterations += further;
  counted(tool, mine, begun);
}

static void interrupted(void *tool, void *mine, uint64_t times) {
  (void)mine;
  ((struct mix *)tool)->interrupted += times;
}

static void merge(void *tool, void *later) {
  struct mix *m = tool, *l = later;
  for (uint32_t i = 0; i < l->count; ++i) m->of[find(m, l->of[i].name)].count += l->of[i].count;
  m->iterations += l->iterations;
  m->interrupted += l->interrupted;
}

static void save(const void *tool, citcat_state *state) { state->write(state, tool, sizeof(struct mix)); }

static int load(void *tool, const void *bytes, size_t count) {
  if (count != sizeof(struct mix)) return -1;
  memcpy(tool, bytes, count);
  return ((struct mix *)tool)->count < MOST ? 0 : -1;
}

static int by_count(const void *a, const void *b) {
  const uint64_t x = ((const struct mix *)a)->of[0].count, y = ((const struct mix *)b)->of[0].count;
  if (x != y) return x < y ? 1 : -1;
  return strcmp(((const struct mix *)a)->of[0].name, ((const struct mix *)b)->of[0].name);
}

static void report(const void *tool, citcat_report *r) {
  struct mix m = *(const struct mix *)tool;
  uint64_t all = 0;
  qsort(m.of, m.count, sizeof m.of[0], by_count);
  for (uint32_t i = 0; i < m.count; ++i) all += m.of[i].count;
  r->number(r, "instructions", "instructions", all - m.interrupted, "");
  r->number(r, "executions", "executions", all, "");
  r->number(r, "iterations", "further iterations of REP", m.iterations, "");
  r->table(r, "mix", "mix");
  r->column(r, "mnemonic", "mnemonic", "");
  r->column(r, "count", "executions", "");
  for (uint32_t i = 0; i < m.count && m.of[i].count != 0; ++i) {
    r->text_cell(r, m.of[i].name);
    r->number_cell(r, m.of[i].count);
  }
  r->end_table(r);
}

const citcat_tool *citcat_tool_v1(void) {
  static const citcat_tool tool = {
      .size = sizeof tool, .version = CITCAT_TOOL_VERSION, .name = "mix",
      .summary = "Count instructions by mnemonic", .wants = CITCAT_WANTS_COUNTS,
      .make = make, .destroy = destroy, .code = code, .counted = counted, .iterated = iterated,
      .interrupted = interrupted, .report = report, .merge = merge, .save = save, .load = load};
  return &tool;
}
