// QEMU's record/replay log as the reader of it sees it. The logs here are written by the facts of
// QEMU's replay/replay-internal.h: big-endian, a byte for the event, then its data.

#include "cli/record/replay_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

constexpr std::uint32_t kVersion10 = 0xe0200c;

std::string big_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int n = bytes - 1; n >= 0; --n) text += static_cast<char>(value >> (8 * n));
  return text;
}

std::string head(std::uint32_t version) { return big_endian(version, 4) + big_endian(0, 8); }
std::string instructions(std::uint32_t count) { return '\0' + big_endian(count, 4); }
/// The guest sends so many bytes; EVENT_CHAR_WRITE.
std::string sent(std::uint32_t bytes) { return '\x16' + big_endian(bytes, 4) + big_endian(0, 4); }
/// Somebody types; EVENT_ASYNC with REPLAY_ASYNC_EVENT_CHAR_READ.
std::string typed(const std::string& text) {
  return std::string("\x07\0", 2) + big_endian(text.size(), 4) + text;
}
/// A packet comes; EVENT_ASYNC with REPLAY_ASYNC_EVENT_NET.
std::string packet(const std::string& bytes) {
  return std::string("\x09\0", 2) + big_endian(0, 4) + big_endian(bytes.size(), 4) + bytes;
}
constexpr char kEnd = '\x27';

std::string some_log() {
  return head(kVersion10) + instructions(1000) + sent(1) + instructions(500) + typed("ls\r") +
         packet("abcd") + instructions(7) + kEnd;
}

class ReplayLogTest : public TemporaryFolder {
 protected:
  ReplayLog read(const std::string& bytes) const {
    store("log", bytes);
    return read_replay_log(path("log"));
  }
};

TEST_F(ReplayLogTest, TellsWhenSomebodySaidSomething) {
  const ReplayLog log = read(some_log());
  EXPECT_TRUE(log.understood);
  EXPECT_TRUE(log.complete);
  EXPECT_EQ(log.instructions, 1507U);
  ASSERT_EQ(log.sent.size(), 1U);
  EXPECT_EQ(log.sent[0].instructions, 1000U);
  ASSERT_EQ(log.typed.size(), 1U);
  EXPECT_EQ(log.typed[0].instructions, 1500U);
  EXPECT_EQ(log.typed[0].text, "ls\r");
  EXPECT_EQ(log.packets, 1U);
}

TEST_F(ReplayLogTest, IsNotCompleteWhereverItIsCut) {
  const std::string whole = some_log();
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(read(whole.substr(0, size)).complete) << size;
}

TEST_F(ReplayLogTest, OfAnotherVersionOrWithAnUnknownEventIsNotUnderstood) {
  EXPECT_FALSE(read(head(kVersion10 + 1) + instructions(1) + kEnd).understood);
  EXPECT_FALSE(read(head(kVersion10) + instructions(1) + '\x7f' + kEnd).understood);
}

TEST_F(ReplayLogTest, WithAnyByteChangedIsReadToSomeEnd) {
  const std::string whole = some_log();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(~changed[at]);
    EXPECT_LE(read(changed).typed.size(), whole.size()) << at;
  }
}

TEST_F(ReplayLogTest, IsReadAsItGrowsWithTheSameResult) {
  const std::string whole = some_log();
  store("log", "");
  ReplayLogReader reader(path("log"), {}, true);
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    // QEMU writes the version last.
    store("part",
          std::string(std::min<std::size_t>(size, 4), '\0') +
              whole.substr(std::min<std::size_t>(size, 4), size - std::min<std::size_t>(size, 4)));
    std::filesystem::copy_file(path("part"), path("log"),
                               std::filesystem::copy_options::overwrite_existing);
    (void)reader.read_on();
  }
  EXPECT_TRUE(reader.read_on().complete);
  EXPECT_EQ(reader.read_on().instructions, 1507U);
  EXPECT_EQ(reader.read_on().typed.size(), 1U);
  EXPECT_EQ(reader.place().offset, whole.size());
  EXPECT_EQ(reader.place().sent, 1U);
}

TEST_F(ReplayLogTest, IsReadOnFromAPlaceWithWhatWasBefore) {
  store("log", some_log());
  ReplayLogReader first(path("log"));
  (void)first.read_on(30);  // the first event that begins there or later is not taken
  const ReplayPlace place = first.place();
  EXPECT_GE(place.offset, 30U);
  EXPECT_EQ(place.instructions, 1500U);
  ReplayLogReader second(path("log"), place);
  const ReplayLog& rest = second.read_on();
  EXPECT_TRUE(rest.complete);
  EXPECT_EQ(rest.instructions, 1507U);
  EXPECT_TRUE(rest.sent.empty());
  ASSERT_EQ(rest.typed.size(), 1U);
  EXPECT_EQ(rest.typed[0].instructions, 1500U);
}

TEST_F(ReplayLogTest, OfAKilledEmulatorIsCompletedBehindItsLastWholeEvent) {
  const std::string whole = some_log();
  const std::string cut = std::string(4, '\0') + whole.substr(4, whole.size() - 10);
  store("log", cut);
  ReplayLogReader reader(path("log"), {}, true);
  EXPECT_FALSE(reader.read_on().complete);
  ASSERT_TRUE(complete_replay_log(path("log"), reader.place()));
  const ReplayLog log = read_replay_log(path("log"));
  EXPECT_TRUE(log.understood);
  EXPECT_TRUE(log.complete);
  EXPECT_EQ(log.instructions, 1500U);
}

}  // namespace
}  // namespace citcat::test
