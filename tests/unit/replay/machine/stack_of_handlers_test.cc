// Handlers of the fast tier call one another, some billions of times: none may keep anything on the
// stack for it. Compilers see to that only when they are told to, in every build.

#include <gtest/gtest.h>
#include <pthread.h>

#include <functional>
#include <string>

#include "formats/io/byte_sink.h"
#include "formats/kt/kt.h"
#include "replay/session/replayer.h"
#include "replay/trace/kt_sink.h"
#include "unit/replay/machine/paged_guest.h"

namespace citcat {
namespace {

void* call(void* what) {
  (*static_cast<const std::function<void()>*>(what))();
  return nullptr;
}

/// Runs it on a stack of so many bytes, whatever the limits of the process are.
void run_on_stack(std::size_t bytes, const std::function<void()>& what) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
  pthread_t thread{};
  ASSERT_EQ(pthread_create(&thread, &attributes, call, const_cast<std::function<void()>*>(&what)),
            0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

/// A loop that loads, calculates and stores. A return address for each of its instructions would
/// fill twice the stack that it is given.
void run_loop(const Listeners& listeners) {
  constexpr std::uint64_t kInstructions = 2'000'000;
  test::PagedGuest guest;
  guest.add({0xa1}, {0x20000});   // again: mov eax,[20000]
  guest.add({0x83, 0xc0, 0x01});  // add eax,1
  guest.add({0xa3}, {0x20000});   // mov [20000],eax
  guest.add({0x75, 0xf1});        // jnz again
  guest.recording.instructions = kInstructions;
  run_on_stack(std::size_t{8} << 20, [&] {
    Replayer replayer(guest.recording, listeners, {});
    const ReplayReport report = replayer.run();
    EXPECT_EQ(report.instructions, kInstructions);
    EXPECT_FALSE(report.divergence);
  });
}

TEST(StackOfHandlers, DoesNotGrowWithTheInstructions) { run_loop({}); }

TEST(StackOfHandlers, DoesNotGrowWithTheInstructionsOfATrace) {
  NullSink out;
  KtWriter writer(out);
  KtSink trace(writer, {});
  run_loop(&trace);
  writer.flush();
  EXPECT_GT(out.size(), 0u);
}

}  // namespace
}  // namespace citcat
