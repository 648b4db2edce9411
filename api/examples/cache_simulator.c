/* A small cache simulator: how often would a set-associative cache with least-recently-used
   replacement have missed on this run? Reads a recording, or KT in any compression.

     cc cache_simulator.c -o cache_simulator $(pkg-config --cflags --libs citcat-c)
     ./cache_simulator boot.citcat 8192 4 16          (bytes, ways, bytes of a line)
     ./cache_simulator boot.citcat 8192 4 16 1000000 2000000   (instructions from, to) */
#include <citcat.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct cache {
  uint32_t sets, ways, line_bytes;
  uint32_t *lines; /* sets * ways line numbers + 1, the last used one of a set first */
  uint64_t accesses, misses;
};

static void touch(struct cache *cache, uint32_t address) {
  const uint32_t line = address / cache->line_bytes;
  uint32_t *set = cache->lines + (size_t)(line % cache->sets) * cache->ways;
  uint32_t way = 0;
  ++cache->accesses;
  while (way < cache->ways && set[way] != line + 1) ++way;
  if (way == cache->ways) {
    ++cache->misses;
    --way;
  }
  for (; way > 0; --way) set[way] = set[way - 1];
  set[0] = line + 1;
}

/* Addresses that are jump targets are no data. */
static int is_branch(const citcat_record *r) {
  const uint8_t op = r->bytes[0];
  return (op >= 0x70 && op <= 0x7f) || (op >= 0xe0 && op <= 0xe3) || op == 0xe9 || op == 0xea ||
         op == 0xeb || (op == 0x0f && r->length > 1 && (r->bytes[1] & 0xf0) == 0x80);
}

static void simulate(struct cache *code, struct cache *data, const citcat_record *r) {
  touch(code, r->address);
  if (is_branch(r)) return;
  for (uint32_t i = 0; i < r->data_count; ++i) touch(data, r->data[i]);
}

static void print(const char *name, const struct cache *cache) {
  const double rate = cache->accesses ? 100.0 * (double)cache->misses / (double)cache->accesses : 0;
  printf("%s %" PRIu64 " accesses, %" PRIu64 " misses (%.3f %%)\n", name, cache->accesses,
         cache->misses, rate);
}

static int make(struct cache *cache, char **argv) {
  const uint32_t bytes = (uint32_t)strtoul(argv[2], NULL, 0);
  cache->ways = (uint32_t)strtoul(argv[3], NULL, 0);
  cache->line_bytes = (uint32_t)strtoul(argv[4], NULL, 0);
  if (cache->ways == 0 || cache->line_bytes == 0) return 0;
  cache->sets = bytes / cache->ways / cache->line_bytes;
  if (cache->sets == 0) return 0;
  cache->lines = calloc((size_t)cache->sets * cache->ways, sizeof *cache->lines);
  return cache->lines != NULL;
}

int main(int argc, char **argv) {
  struct cache code = {0}, data = {0};
  uint64_t to = UINT64_MAX;
  citcat_record record;
  if ((argc != 5 && argc != 7) || !make(&code, argv) || !make(&data, argv)) {
    fprintf(stderr, "usage: %s TRACE BYTES WAYS LINE [FROM TO]\n", argv[0]);
    return 2;
  }
  citcat_trace *trace = citcat_open(argv[1], 0);
  if (!trace) {
    fprintf(stderr, "%s\n", citcat_error(NULL));
    return 1;
  }
  if (argc == 7) {
    to = strtoull(argv[6], NULL, 0);
    citcat_seek(trace, strtoull(argv[5], NULL, 0));
  }
  while (citcat_next(trace, &record) > 0 && record.instruction < to) {
    if (record.kind == CITCAT_INSTRUCTION) simulate(&code, &data, &record);
  }
  if (citcat_error(trace)) {
    fprintf(stderr, "%s\n", citcat_error(trace));
    return 1;
  }
  citcat_close(trace);
  print("code", &code);
  print("data", &data);
  free(code.lines);
  free(data.lines);
  return 0;
}
