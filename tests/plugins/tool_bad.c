/* A tool that misbehaves as its option `how` says, after so many executions as `after` says. */
#define _GNU_SOURCE
#include <citcat_tool.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <unistd.h>

struct tool {
  const char *how; /* of a set of constants */
  uint64_t after, executions;
};

static const char *const kHows[] = {"wild",  "exit", "loop",   "report", "close",
                                    "child", "hide", "orphan", "reach",  "none"};

static void *make(const citcat_tool_setup *setup) {
  const char *how = setup->option(setup, "how"), *after = setup->option(setup, "after");
  struct tool *t = calloc(1, sizeof *t);
  if (t == NULL) abort();
  for (size_t i = 0; how != NULL && i < sizeof kHows / sizeof *kHows; ++i)
    if (strcmp(how, kHows[i]) == 0) t->how = kHows[i];
  if (t->how == NULL) {
    setup->fail(setup, "expected how=wild, exit, loop, report, close, child, hide, orphan, reach or none");
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

/* Leaves a process behind, whose number is in the file "left" then. `hides`: it leaves its group and its
   session, as a daemon does. */
static void leave_process(int hides) {
  int ready[2];
  char byte;
  if (pipe(ready) != 0) abort();
  if (fork() != 0) {
    close(ready[1]);
    if (read(ready[0], &byte, 1) < 0) abort();
    return;
  }
  if (hides) {
    setsid();
    if (fork() != 0) _exit(0);
  }
  FILE *left = fopen("left", "w");
  if (left == NULL) abort();
  fprintf(left, "%d\n", (int)getpid());
  fclose(left);
  close(ready[0]);
  close(ready[1]);
  for (;;) sleep(1);
}

static pid_t parent_of(pid_t process) {
  char name[64], line[256];
  pid_t parent = 0;
  snprintf(name, sizeof name, "/proc/%d/status", (int)process);
  FILE *status = fopen(name, "r");
  while (status != NULL && fgets(line, sizeof line, status) != NULL) sscanf(line, "PPid: %d", &parent);
  if (status != NULL) fclose(status);
  return parent;
}

/* Says in the file "reached" by which ways the memory of the processes above was reached. */
static void reach(void) {
  FILE *reached = fopen("reached", "w");
  if (reached == NULL) abort();
  pid_t above = getppid();
  for (int i = 0; i < 2; ++i, above = parent_of(above)) {
    char name[64];
    int own = 0;
    snprintf(name, sizeof name, "/proc/%d/mem", (int)above);
    if (open(name, O_RDWR) >= 0 || open(name, O_RDONLY) >= 0) fprintf(reached, "mem of %d\n", i);
    struct iovec here = {&own, sizeof own};
    errno = 0;
    if (process_vm_readv(above, &here, 1, &here, 1, 0) >= 0 || errno == EFAULT)
      fprintf(reached, "process_vm_readv of %d\n", i);
    if (ptrace(PTRACE_ATTACH, above, NULL, NULL) == 0) fprintf(reached, "ptrace of %d\n", i);
#ifdef EXPECT_SECCOMP
    if (kill(above, SIGCONT) == 0) fprintf(reached, "kill of %d\n", i);
#endif
  }
#ifdef EXPECT_SECCOMP
  if (setsid() >= 0 || setpgid(0, 0) == 0) fprintf(reached, "left its group\n");
#endif
  fprintf(reached, "tried\n");
  fclose(reached);
}

static void run(void *tool, void *mine, const citcat_execution *e) {
  struct tool *t = tool;
  (void)mine;
  if (++t->executions != t->after) return;
  if (strcmp(t->how, "wild") == 0) write_wildly(e->addresses != NULL ? (const void *)e->addresses : e);
  if (strcmp(t->how, "exit") == 0) exit(0);
  if (strcmp(t->how, "loop") == 0)
    for (;;) sleep(1);
  if (strcmp(t->how, "child") == 0) leave_process(0);
  if (strcmp(t->how, "hide") == 0) leave_process(1);
  if (strcmp(t->how, "orphan") == 0) {
    leave_process(1);
    for (;;) sleep(1);
  }
  if (strcmp(t->how, "reach") == 0) reach();
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
