/* Who wrote this address? The last instructions that wrote to a physical byte, latest first.
     cc -shared -fPIC $(pkg-config --cflags citcat-tool) tool_last_write.c -o last_write.so
     citcat analyze boot.citcat --tool ./last_write.so:address=0x9fc00 */
#include <citcat_tool.h>
#include <stdio.h>
#include <stdlib.h>

enum { KEPT = 16 };

struct write { uint64_t instruction, linear, process; uint32_t level; };

struct tool {
  uint64_t address, writes;
  struct write last[KEPT]; /* number `writes % KEPT` is the oldest */
};

static void *make(const citcat_tool_setup *setup) {
  const char *text = setup->option(setup, "address");
  char *end;
  if (text == NULL) {
    setup->fail(setup, "expected address=A, a physical address");
    return NULL;
  }
  struct tool *t = calloc(1, sizeof *t);
  if (t == NULL) abort();
  t->address = strtoull(text, &end, 0);
  if (end == text || *end != '\0') {
    setup->fail(setup, "expected a number as address");
    free(t);
    return NULL;
  }
  return t;
}

static void destroy(void *tool) { free(tool); }

static void run(void *tool, void *mine, const citcat_execution *e) {
  struct tool *t = tool;
  (void)mine;
  for (uint32_t r = 0; r < e->reference_count; ++r) {
    const citcat_reference *a = citcat_reference_at(e, r);
    if (!a->write) continue;
    for (uint32_t n = 0; n < e->iterations; ++n) {
      if (t->address - (a->physical + (uint64_t)((int64_t)e->step * n)) >= a->bytes) continue;
      const citcat_instruction *i = citcat_instruction_at(e->block, a->instruction);
      t->last[t->writes++ % KEPT] = (struct write){e->instruction + a->instruction, i->linear,
                                                   e->context.address_space, e->context.level};
    }
  }
}

static void report(const void *tool, citcat_report *r) {
  const struct tool *t = tool;
  char text[24];
  r->number(r, "writes", "writes", t->writes, "");
  r->table(r, "last", "the last of them");
  r->column(r, "instruction", "instruction", "");
  r->column(r, "linear", "at", "");
  r->column(r, "process", "process", "");
  r->column(r, "level", "level", "");
  for (uint64_t n = 0; n < KEPT && n < t->writes; ++n) {
    const struct write *w = &t->last[(t->writes - 1 - n) % KEPT];
    r->number_cell(r, w->instruction);
    snprintf(text, sizeof text, "%08llx", (unsigned long long)w->linear);
    r->text_cell(r, text);
    snprintf(text, sizeof text, "%08llx", (unsigned long long)w->process);
    r->text_cell(r, text);
    r->number_cell(r, w->level);
  }
  r->end_table(r);
}

const citcat_tool *citcat_tool_v1(void) {
  static const citcat_tool tool = {
      .size = sizeof tool, .version = CITCAT_TOOL_VERSION, .name = "last_write",
      .summary = "List the last instructions that wrote to a physical byte",
      .options = "address=A  the byte's physical address",
      .wants = CITCAT_WANTS_REFERENCES, .make = make, .destroy = destroy, .run = run, .report = report};
  return &tool;
}
