/* A tool that misbehaves as its option `how` says, after so many executions as `after` says. */
#include <citcat_tool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tool {
  const char *how; /* of a set of constants */
  uint64_t after, executions;
};

static const char *const kHows[] = {"wild", "exit", "loop", "report", "close", "none"};

static void *make(const citcat_tool_setup *setup) {
  const char *how = setup->option(setup, "how"), *after = setup->option(setup, "after");
  struct tool *t = calloc(1, sizeof *t);
  if (t == NULL) abort();
  for (size_t i = 0; how != NULL && i < sizeof kHows / sizeof *kHows; ++i)
    if (strcmp(how, kHows[i]) == 0) t->how = kHows[i];
  if (t->how == NULL) {
    setup->fail(setup, "expected how=wild, exit, loop, report, close or none");
    free(t);
    return NULL;
  }
  t->after = after == NULL ? 1000 : strtoull(after, NULL, 0);
  return t;
}

static void destroy(void *tool) {
  struct tool *t = tool;
  if (strcmp(t->how, "close") == 0 && t->executions > t->after) abort();
  free(t);
}

/* Over all that it can reach from a pointer of the host's. */
static void write_wildly(const void *from) {
  volatile char *at = (volatile char *)(uintptr_t)from;
  for (;;) *at++ = 0x5a;
}

static void run(void *tool, void *mine, const citcat_execution *e) {
  struct tool *t = tool;
  (void)mine;
  if (++t->executions != t->after) return;
  if (strcmp(t->how, "wild") == 0) write_wildly(e->addresses != NULL ? (const void *)e->addresses : e);
  if (strcmp(t->how, "exit") == 0) exit(0);
  if (strcmp(t->how, "loop") == 0)
    for (;;) sleep(1);
}

static void report(const void *tool, citcat_report *r) {
  const struct tool *t = tool;
  r->number(r, "executions", "executions", t->executions, "");
  if (strcmp(t->how, "report") == 0) r->end_table(r);
}

const citcat_tool *citcat_tool_v1(void) {
  static const citcat_tool tool = {
      .size = sizeof tool, .version = CITCAT_TOOL_VERSION, .name = "bad",
      .summary = "Misbehave", .options = "how=HOW  in which way\nafter=N  executions",
      .wants = CITCAT_WANTS_REFERENCES, .make = make, .destroy = destroy, .run = run, .report = report};
  return &tool;
}
