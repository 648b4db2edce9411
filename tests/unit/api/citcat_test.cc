// The C interface as a program of somebody else's uses it: threads, no memory, NULL.

#include "api/citcat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "golden/process.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;

/// What a thread has read: how much, a sum over it, and what went wrong.
struct Read {
  std::uint64_t records = 0, sum = 14695981039346656037U;
  std::string error;
  bool operator==(const Read&) const = default;
};

void add(Read& read, std::uint64_t value) { read.sum = (read.sum ^ value) * 1099511628211U; }

Read read_all(const std::string& path) {
  Read read;
  citcat_trace* const trace = citcat_open(path.c_str(), CITCAT_EVENTS);
  if (trace == nullptr) {
    read.error = citcat_error(nullptr);
    return read;
  }
  citcat_record record;
  while (citcat_next(trace, &record) > 0) {
    ++read.records;
    add(read, record.instruction);
    add(read, record.address);
    add(read, record.kind);
    for (int i = 0; i < record.data_count; ++i) add(read, record.data[i]);
  }
  if (const char* const error = citcat_error(trace)) read.error = error;
  citcat_close(trace);
  return read;
}

class CInterface : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string sample = CITCAT_SOURCE_DIR "/samples/ibm5150/";
    const ProcessResult made =
        run_citcat({"import", sample + "area5150.sr", "--cpu", "8088", "--initial-state",
                    sample + "state.json", "--start", "interrupt:0", "-o", recording()},
                   folder_.path());
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  std::string recording() const { return folder_.path() / "r.citcat"; }
  std::string file(const std::string& name) const { return folder_.path() / name; }

 private:
  TemporaryFolder folder_;
};

TEST_F(CInterface, SaysHowManyProcessorsARecordingHas) {
  EXPECT_EQ(citcat_processors(recording().c_str()), 1U);
  EXPECT_EQ(citcat_processors((recording() + "@0").c_str()), 1U);
  std::ofstream(file("trace.kt"), std::ios::binary) << "no archive";
  EXPECT_EQ(citcat_processors(file("trace.kt").c_str()), 1U);
  EXPECT_EQ(citcat_error(nullptr), nullptr);
  EXPECT_EQ(citcat_processors(file("absent.citcat").c_str()), 0U);
  EXPECT_THAT(citcat_error(nullptr), HasSubstr("absent.citcat"));
  EXPECT_EQ(citcat_processors(nullptr), 0U);
  EXPECT_STREQ(citcat_error(nullptr), "no path was given");

  const std::string queue = CITCAT_SOURCE_DIR "/samples/two-processors/queue.";
  const ProcessResult made =
      run_citcat({"import", queue + "bin.zst", "--internal", "0=" + queue + "side.0.csv",
                  "--internal", "1=" + queue + "side.1.csv", "-o", file("two.citcat")},
                 file("."));
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(citcat_processors(file("two.citcat").c_str()), 2U);
  EXPECT_EQ(citcat_processors(file("two.citcat@1").c_str()), 1U);
}

TEST_F(CInterface, SixteenThreadsReadOneRecordingAlike) {
  const Read alone = read_all(recording());
  ASSERT_EQ(alone.error, "");
  ASSERT_GT(alone.records, 600U);
  constexpr std::size_t kThreads = 16, kTimes = 3;
  std::vector<std::vector<Read>> found(kThreads);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < kTimes; ++i) found[t].push_back(read_all(recording()));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<Read>& reads : found) {
    for (const Read& read : reads) {
      EXPECT_EQ(read.error, "");
      EXPECT_EQ(read, alone);
    }
  }
}

TEST_F(CInterface, NoTraceAndNoRecordAreErrors) {
  citcat_record record;
  EXPECT_EQ(citcat_open(nullptr, 0), nullptr);
  EXPECT_THAT(citcat_error(nullptr), HasSubstr("no file"));
  EXPECT_EQ(citcat_next(nullptr, &record), -1);
  EXPECT_THAT(citcat_error(nullptr), HasSubstr("no trace"));
  EXPECT_EQ(citcat_read(nullptr, &record, 1), 0U);
  EXPECT_EQ(citcat_read(nullptr, nullptr, 1), 0U);
  EXPECT_EQ(citcat_seek(nullptr, 0), -1);
  EXPECT_EQ(citcat_seek_iteration(nullptr, 0, 0), -1);
  citcat_close(nullptr);
  citcat_trace* const trace = citcat_open(recording().c_str(), 0);
  ASSERT_NE(trace, nullptr);
  EXPECT_EQ(citcat_read(trace, nullptr, 0), 0U);
  EXPECT_EQ(citcat_error(trace), nullptr);
  EXPECT_EQ(citcat_next(trace, nullptr), -1);
  EXPECT_THAT(citcat_error(trace), HasSubstr("no record"));
  citcat_close(trace);
}

TEST_F(CInterface, LeavesTheSignalsOfTheProcessAlone) {
  std::ofstream(file("long.kt"), std::ios::binary) << [] {
    std::string kt;
    for (int i = 0; i < 400'000; ++i) kt += std::string("\0\1\2\3\1\x90\0\0", 8);
    return kt;
  }();
  std::vector<struct sigaction> before(SIGRTMIN), after(SIGRTMIN);
  for (int s = 1; s < SIGRTMIN; ++s) sigaction(s, nullptr, &before[static_cast<std::size_t>(s)]);
  EXPECT_EQ(read_all(file("long.kt")).records, 400'000U);
  EXPECT_EQ(read_all(recording()).error, "");
  for (int s = 1; s < SIGRTMIN; ++s) {
    const auto at = static_cast<std::size_t>(s);
    sigaction(s, nullptr, &after[at]);
    EXPECT_EQ(after[at].sa_handler, before[at].sa_handler) << "signal " << s;
  }
}

/// The outcome of a child with at most so much more address space: 0 when it could read the trace,
/// 1 when it was told why not, anything else when it was ended or told nothing.
int outcome_with(std::uint64_t more_bytes, const std::string& recording) {
  const pid_t child = fork();
  if (child == 0) {
    std::ifstream statm("/proc/self/statm");
    std::uint64_t pages = 0;
    statm >> pages;
    const rlim_t most = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) + more_bytes;
    const rlimit limit{most, most};
    setrlimit(RLIMIT_AS, &limit);
    const Read read = read_all(recording);
    if (read.error.empty()) _exit(read.records > 600 ? 0 : 2);
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST_F(CInterface, WithoutMemoryTheCallFailsAndTheProcessLives) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's own allocator ends the process without address space";
#endif
  ASSERT_EQ(read_all(recording()).error, "");  // loads the engine's library
  int failed = 0;
  for (std::uint64_t more = std::uint64_t{1} << 20; more <= std::uint64_t{160} << 20;
       more += 8 << 20) {
    const int outcome = outcome_with(more, recording());
    EXPECT_TRUE(outcome == 0 || outcome == 1) << outcome << " with " << more << " bytes more";
    failed += outcome == 1 ? 1 : 0;
  }
  EXPECT_GT(failed, 10);
}

/// docs/formats/kt.md, "Traces of 64 bits": mov [rbx], rax to FFFF888000001000h at
/// FFFFFFFF81000010h.
TEST(WideTraces, AreReadWithTheirAddressesByWhoAsksForThem) {
  const std::string path =
      ::testing::TempDir() + "citcat_wide_" + std::to_string(::getpid()) + ".kt";
  constexpr unsigned char kTrace[] = {
      'K',  'T',  '6',  '4',  0x82, 1, 0, 0, 0x10, 0x00, 0x00, 0x81, 0xff, 0xff, 0xff, 0xff,
      0x13, 0x48, 0x89, 0x03, 0,    0, 0, 0, 0x00, 0x10, 0x00, 0x00, 0x80, 0x88, 0xff, 0xff};
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(kTrace), sizeof kTrace);

  citcat_trace* narrow = citcat_open(path.c_str(), 0);
  citcat_record record;
  ASSERT_NE(narrow, nullptr);
  EXPECT_EQ(citcat_next(narrow, &record), -1);
  EXPECT_THAT(citcat_error(narrow), HasSubstr("a trace of 64 bits"));
  citcat_close(narrow);

  citcat_trace* trace = citcat_open(path.c_str(), CITCAT_WIDE);
  ASSERT_NE(trace, nullptr);
  citcat_wide_record wide;
  ASSERT_EQ(citcat_read_wide(trace, &wide, 1), 1U);
  EXPECT_EQ(wide.address, 0xffffffff81000010U);
  EXPECT_EQ(wide.data_count, 1);
  EXPECT_EQ(wide.data[0], 0xffff888000001000U);
  EXPECT_EQ(wide.length, 3);
  EXPECT_EQ(citcat_read_wide(trace, &wide, 1), 0U);
  EXPECT_EQ(citcat_error(trace), nullptr);
  ASSERT_EQ(citcat_seek(trace, 0), 0);
  EXPECT_EQ(citcat_next(trace, &record), -1);
  EXPECT_THAT(citcat_error(trace), HasSubstr("citcat_read_wide"));
  citcat_close(trace);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace citcat::testing
