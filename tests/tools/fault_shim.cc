// Preloaded into a program under test: makes one of its calls of the system, or of the allocator,
// go wrong, counts them, and writes down what is done to files.
//
//   CITCAT_SHIM=CALL:N:HOW   the Nth call (from 1) of CALL goes wrong. CALL: open, read, write,
//   fsync,
//                            close, rename, ftruncate, flock, mmap, mkdir, malloc. HOW: the number
//                            of an errno; "short" (half is read or written, which is no error);
//                            "tear" (half is written, then the program is ended as by kill -9);
//                            "kill" (before the call). An errno and ":rest" behind it: this call
//                            and all after it. Calls are counted from main() on: what libraries do
//                            before it nobody can contain.
//   CITCAT_SHIM_COUNTS=FILE  what was called how often, one line each, when the program ends
//   CITCAT_SHIM_LOG=FILE     every write, ftruncate, fsync and rename, for tests of power cuts
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace {

enum Call {
  kOpen,
  kRead,
  kWrite,
  kFsync,
  kClose,
  kRename,
  kTruncate,
  kLock,
  kMap,
  kFolder,
  kAllocate,
  kCalls
};
constexpr const char* kNames[kCalls] = {"open",      "read",  "write", "fsync", "close", "rename",
                                        "ftruncate", "flock", "mmap",  "mkdir", "malloc"};

/// What is to go wrong. Read once, before the program's own code runs.
struct Fault {
  int call = kCalls;
  unsigned long nth = 0;
  int error = 0;
  bool rest = false, is_short = false, tear = false, kill = false;
};
Fault fault;
std::atomic<unsigned long> counts[kCalls];
std::atomic<bool> ready{false};
const char* counts_path = nullptr;
int log_descriptor = -1;

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

using WriteFunction = ssize_t (*)(int, const void*, size_t);
ssize_t plain_write(int to, const void* bytes, size_t size) {
  static const auto function = next<WriteFunction>("write");
  return function(to, bytes, size);
}

/// Whether this call is the one; ends the program where that is what is wanted.
bool hit(Call call) {
  if (!ready) return false;
  const unsigned long number = ++counts[call];
  if (call != fault.call || (fault.rest ? number < fault.nth : number != fault.nth)) return false;
  if (fault.kill) kill(getpid(), SIGKILL);
  return true;
}

/// The same for a call that fails, or not at all.
bool fails(Call call) {
  if (!hit(call) || fault.error == 0) return false;
  errno = fault.error;
  return true;
}

void note(const char* what, const char* name, long a, const void* bytes, unsigned long size) {
  if (log_descriptor < 0) return;
  const int saved = errno;
  char head[8192];
  const int n = snprintf(head, sizeof head, "%s %ld %lu %s\n", what, a, size, name);
  plain_write(log_descriptor, head, static_cast<size_t>(n));
  if (size != 0) plain_write(log_descriptor, bytes, size);
  errno = saved;
}

/// The name of a file that is open; empty for what is none.
const char* name_of(int descriptor, char* room, size_t size) {
  struct stat status;
  room[0] = '\0';
  if (log_descriptor < 0 || fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))
    return room;
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t n = readlink(link, room, size - 1);
  room[n < 0 ? 0 : n] = '\0';
  return room;
}

void parse(const char* text) {
  char call[32] = {}, how[32] = {}, rest[8] = {};
  if (sscanf(text, "%31[^:]:%lu:%31[^:]:%7s", call, &fault.nth, how, rest) < 3) abort();
  for (int i = 0; i < kCalls; ++i) {
    if (strcmp(call, kNames[i]) == 0) fault.call = i;
  }
  fault.rest = strcmp(rest, "rest") == 0;
  fault.is_short = strcmp(how, "short") == 0;
  fault.tear = strcmp(how, "tear") == 0;
  fault.kill = strcmp(how, "kill") == 0;
  fault.error = atoi(how);
  if (fault.call == kCalls) abort();
}

__attribute__((constructor)) void begin() {
  if (const char* const text = getenv("CITCAT_SHIM")) parse(text);
  counts_path = getenv("CITCAT_SHIM_COUNTS");
  if (const char* const path = getenv("CITCAT_SHIM_LOG")) {
    log_descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  }
  // Processes that this one begins are not counted with it.
  unsetenv("LD_PRELOAD");
}

using Main = int (*)(int, char**, char**);
Main program_main = nullptr;

int begin_program(int count, char** arguments, char** environment) {
  ready = true;
  return program_main(count, arguments, environment);
}

__attribute__((destructor)) void end() {
  ready = false;
  if (counts_path == nullptr) return;
  const int to = open(counts_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  for (int i = 0; i < kCalls; ++i) {
    char line[64];
    const int n = snprintf(line, sizeof line, "%s %lu\n", kNames[i], counts[i].load());
    plain_write(to, line, static_cast<size_t>(n));
  }
  close(to);
}

}  // namespace

// The C library's own names, with its meaning of them.
extern "C" {

int __libc_start_main(Main main, int count, char** arguments, void (*init)(), void (*fini)(),
                      void (*loader_fini)(), void* stack_end) {
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  program_main = main;
  return next<Start>("__libc_start_main")(begin_program, count, arguments, init, fini, loader_fini,
                                          stack_end);
}

int open(const char* path, int flags, ...) {
  static const auto function = next<int (*)(const char*, int, ...)>("open");
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  if (fails(kOpen)) return -1;
  return function(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return open(path, flags, mode);
}

ssize_t read(int from, void* bytes, size_t size) {
  static const auto function = next<ssize_t (*)(int, void*, size_t)>("read");
  if (hit(kRead)) {
    if (fault.is_short) return function(from, bytes, (size + 1) / 2);
    errno = fault.error;
    return -1;
  }
  return function(from, bytes, size);
}
ssize_t pread(int from, void* bytes, size_t size, off_t at) {
  static const auto function = next<ssize_t (*)(int, void*, size_t, off_t)>("pread");
  if (hit(kRead)) {
    if (fault.is_short) return function(from, bytes, (size + 1) / 2, at);
    errno = fault.error;
    return -1;
  }
  return function(from, bytes, size, at);
}
ssize_t pread64(int from, void* bytes, size_t size, off_t at) {
  return pread(from, bytes, size, at);
}

ssize_t write(int to, const void* bytes, size_t size) {
  char name[4096];
  const off_t at = log_descriptor < 0 ? 0 : lseek(to, 0, SEEK_CUR);
  ssize_t done = 0;
  if (hit(kWrite)) {
    if (!fault.is_short && !fault.tear) {
      errno = fault.error;
      return -1;
    }
    done = plain_write(to, bytes, (size + 1) / 2);
    if (fault.tear) kill(getpid(), SIGKILL);
  } else {
    done = plain_write(to, bytes, size);
  }
  if (done > 0 && log_descriptor >= 0 && name_of(to, name, sizeof name)[0] != '\0') {
    note("write", name, at, bytes, static_cast<unsigned long>(done));
  }
  return done;
}

int fsync(int descriptor) {
  static const auto function = next<int (*)(int)>("fsync");
  if (fails(kFsync)) return -1;
  char name[4096];
  if (log_descriptor >= 0) {
    struct stat status;
    const bool folder = fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode);
    note(folder ? "syncdir" : "fsync", folder ? "" : name_of(descriptor, name, sizeof name), 0, "",
         0);
    return 0;  // nothing is lost in a test but what it takes away itself
  }
  return function(descriptor);
}

int close(int descriptor) {
  static const auto function = next<int (*)(int)>("close");
  if (fails(kClose)) {
    function(descriptor);
    errno = fault.error;
    return -1;
  }
  return function(descriptor);
}

int rename(const char* from, const char* to) {
  static const auto function = next<int (*)(const char*, const char*)>("rename");
  if (fails(kRename)) return -1;
  char names[8192];
  snprintf(names, sizeof names, "%s\t%s", from, to);
  const int done = function(from, to);
  if (done == 0) note("rename", names, 0, "", 0);
  return done;
}

int ftruncate(int descriptor, off_t size) {
  static const auto function = next<int (*)(int, off_t)>("ftruncate");
  if (fails(kTruncate)) return -1;
  char name[4096];
  note("truncate", name_of(descriptor, name, sizeof name), size, "", 0);
  return function(descriptor, size);
}
int ftruncate64(int descriptor, off_t size) { return ftruncate(descriptor, size); }

int flock(int descriptor, int operation) {
  static const auto function = next<int (*)(int, int)>("flock");
  return fails(kLock) ? -1 : function(descriptor, operation);
}

int mkdir(const char* path, mode_t mode) {
  static const auto function = next<int (*)(const char*, mode_t)>("mkdir");
  return fails(kFolder) ? -1 : function(path, mode);
}

void* mmap(void* at, size_t size, int protection, int flags, int descriptor, off_t offset) {
  static const auto function = next<void* (*)(void*, size_t, int, int, int, off_t)>("mmap");
  if (fails(kMap)) return MAP_FAILED;
  return function(at, size, protection, flags, descriptor, offset);
}
void* mmap64(void* at, size_t size, int protection, int flags, int descriptor, off_t offset) {
  return mmap(at, size, protection, flags, descriptor, offset);
}

void* malloc(size_t size) { return fails(kAllocate) ? nullptr : __libc_malloc(size); }
void* calloc(size_t count, size_t size) {
  return fails(kAllocate) ? nullptr : __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  return fails(kAllocate) ? nullptr : __libc_realloc(old, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  return fails(kAllocate) ? nullptr : __libc_memalign(alignment, size);
}
void* memalign(size_t alignment, size_t size) { return aligned_alloc(alignment, size); }
int posix_memalign(void** to, size_t alignment, size_t size) {
  void* const found = aligned_alloc(alignment, size);
  if (found == nullptr) return ENOMEM;
  *to = found;
  return 0;
}

}  // extern "C"
