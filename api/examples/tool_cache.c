/* A cache for code and one for data, direct-mapped, by physical addresses: the figures of
   `--tool cache:bytes=8192,line=16,ways=1,split,allocate`, as a tool of one's own. But for one thing:
   that the processor can switch its cache off (CR0.CD) is not looked at.
     cc -shared -fPIC $(pkg-config --cflags citcat-tool) tool_cache.c -o cache.so
     citcat analyze boot.citcat --tool ./cache.so:bytes=8192,line=16 */
#include <citcat_tool.h>
#include <stdlib.h>

struct cache {
  uint64_t references, fills;
  uint64_t *line_in; /* 1 + number of the line that each place holds; 0: none */
};

struct tool {
  uint64_t places, line, ram_bytes;
  struct cache code, data;
};

static uint64_t number(const citcat_tool_setup *setup, const char *key, uint64_t otherwise) {
  const char *text = setup->option(setup, key);
  return text == NULL ? otherwise : strtoull(text, NULL, 0);
}

static void *make(const citcat_tool_setup *setup) {
  const uint64_t bytes = number(setup, "bytes", 8192), line = number(setup, "line", 16);
  if (line == 0 || bytes < line || bytes > (1u << 30) || bytes % line != 0) {
    setup->fail(setup, "expected bytes to be a multiple of line, at most 1 GiB");
    return NULL;
  }
  struct tool *t = calloc(1, sizeof *t);
  if (t == NULL) abort();
  t->line = line;
  t->ram_bytes = setup->ram_bytes;
  t->places = bytes / line;
  t->code.line_in = calloc(t->places, sizeof(uint64_t));
  t->data.line_in = calloc(t->places, sizeof(uint64_t));
  if (t->code.line_in == NULL || t->data.line_in == NULL) abort();
  return t;
}

static void destroy(void *tool) {
  struct tool *t = tool;
  free(t->code.line_in);
  free(t->data.line_in);
  free(t);
}

/* Only memory is cached: not the hole of a PC below 1 MiB, nor devices behind the memory. */
static int cached(const struct tool *t, uint64_t physical) {
  return (physical < 0xa0000 || physical >= 0x100000) && (t->ram_bytes == 0 || physical < t->ram_bytes);
}

static void touch(const struct tool *t, struct cache *c, uint64_t physical, uint64_t bytes) {
  ++c->references;
  for (uint64_t l = physical / t->line; l <= (physical + bytes - 1) / t->line; ++l) {
    if (c->line_in[l % t->places] == l + 1 || !cached(t, l * t->line)) continue;
    c->line_in[l % t->places] = l + 1;
    ++c->fills;
  }
}

/* Somebody else wrote there: what the cache holds is old. */
static void drop(const struct tool *t, struct cache *c, uint64_t physical, uint64_t bytes) {
  for (uint64_t l = physical / t->line; l <= (physical + bytes - 1) / t->line; ++l)
    if (c->line_in[l % t->places] == l + 1) c->line_in[l % t->places] = 0;
}

static void data(struct tool *t, const citcat_reference *a, uint64_t physical) {
  if (a->write) drop(t, &t->code, physical, a->bytes);
  touch(t, &t->data, physical, a->bytes);
}

static void fetch(struct tool *t, const citcat_instruction *i) {
  const uint64_t room = 4096 - i->linear % 4096, first = i->length < room ? i->length : room;
  touch(t, &t->code, i->physical, first);
  if (first < i->length) touch(t, &t->code, i->physical_rest, i->length - first);
}

static void run(void *tool, void *mine, const citcat_execution *e) {
  struct tool *t = tool;
  uint32_t r = 0;
  (void)mine;
  for (uint32_t i = 0; i < e->block->count; ++i) {
    if (e->iteration == 0) fetch(t, citcat_instruction_at(e->block, i)); /* of a REP once */
    for (uint32_t n = 0; n < e->iterations; ++n) {
      for (r = 0; r < e->reference_count; ++r) {
        const citcat_reference *a = citcat_reference_at(e, r);
        if (a->instruction == i) data(t, a, a->physical + (uint64_t)((int64_t)e->step * n));
      }
    }
  }
}

/* Descriptor tables, frames of interrupts, walks for code; code that was fetched and refused. */
static void accesses(void *tool, const citcat_accesses *all) {
  struct tool *t = tool;
  for (uint32_t i = 0; i < all->count; ++i) {
    const citcat_reference *a = citcat_access_at(all, i);
    if (a->code) touch(t, &t->code, a->physical, a->bytes);
    else data(t, a, a->physical);
  }
}

/* Other bus masters. */
static void event(void *tool, const citcat_tool_event *e) {
  struct tool *t = tool;
  if (e->kind != CITCAT_TOOL_EXTERNAL_WRITE) return;
  drop(t, &t->code, e->physical, e->bytes);
  drop(t, &t->data, e->physical, e->bytes);
}

static void side(citcat_report *r, const char *key, const char *title, const struct cache *c) {
  r->group(r, key, title);
  r->number(r, "references", "references", c->references, "");
  r->number(r, "fills", "lines filled", c->fills, "");
  r->end_group(r);
}

static void report(const void *tool, citcat_report *r) {
  const struct tool *t = tool;
  side(r, "code", "code", &t->code);
  side(r, "data", "data", &t->data);
}

const citcat_tool *citcat_tool_v1(void) {
  static const citcat_tool tool = {
      .size = sizeof tool, .version = CITCAT_TOOL_VERSION, .name = "direct_mapped",
      .summary = "Count the fills of two direct-mapped caches",
      .options = "bytes=N  size of each, default 8192\nline=N  of a line, default 16",
      .wants = CITCAT_WANTS_REFERENCES | CITCAT_WANTS_WALKS | CITCAT_WANTS_EVENTS,
      .make = make, .destroy = destroy, .run = run, .accesses = accesses, .event = event,
      .report = report};
  return &tool;
}
