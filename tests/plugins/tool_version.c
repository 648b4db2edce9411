/* A tool of a version that is not there yet. */
#include <citcat_tool.h>

static void *make(const citcat_tool_setup *setup) { return (void *)(uintptr_t)setup; }
static void destroy(void *tool) { (void)tool; }
static void report(const void *tool, citcat_report *r) {
  (void)tool;
  r->number(r, "never", "never", 0, "");
}

const citcat_tool *citcat_tool_v1(void) {
  static const citcat_tool tool = {.size = sizeof tool, .version = CITCAT_TOOL_VERSION + 1,
                                   .name = "later", .make = make, .destroy = destroy, .report = report};
  return &tool;
}
