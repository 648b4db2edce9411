#include "events/archive/container.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <random>

#include "formats/io/error.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<std::uint8_t>;
constexpr ChunkKind kTestChunk = chunk_kind("TEST");

Bytes payload(std::uint32_t number) {
  std::mt19937 random(number);
  Bytes bytes(random() % 120);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(number % 2 ? random() : number);
  return bytes;
}

class ContainerTest : public test::TemporaryFolder {
 protected:
  void write(std::uint32_t chunks) {
    ContainerWriter writer(path("c"));
    for (std::uint32_t i = 0; i < chunks; ++i) writer.add(kTestChunk, payload(i), ZstdOptions{});
    writer.finish();
  }
  void append(std::uint32_t from, std::uint32_t to) {
    ContainerAppender appender(path("c"));
    for (std::uint32_t i = from; i < to; ++i) {
      appender.add(kTestChunk, payload(i), ZstdOptions{});
    }
    appender.finish();
  }
  void expect_payloads(const std::string& name, std::uint32_t chunks) {
    const ContainerReader reader(path(name));
    const std::vector<ChunkInfo> kept = test_chunks(reader);
    ASSERT_EQ(kept.size(), chunks);
    for (std::uint32_t i = 0; i < chunks; ++i) EXPECT_EQ(reader.read(kept[i]), payload(i)) << i;
  }
  /// The chunks of the content, without what salvaging says of losses.
  static std::vector<ChunkInfo> test_chunks(const ContainerReader& reader) {
    std::vector<ChunkInfo> kept;
    for (const ChunkInfo& chunk : reader.chunks()) {
      if (chunk.kind == kTestChunk) kept.push_back(chunk);
    }
    return kept;
  }
  /// Reads the container by its index; "" when nothing is wrong.
  std::string read_all() {
    try {
      const ContainerReader reader(path("c"));
      for (const ChunkInfo& chunk : reader.chunks()) reader.read(chunk);
      return reader.unfinished_append() ? "unfinished append" : "";
    } catch (const FormatError& error) {
      return error.what();
    }
  }
};

TEST_F(ContainerTest, GivesBackItsChunks) {
  for (const std::uint32_t chunks : {0U, 1U, 50U}) {
    write(chunks);
    expect_payloads("c", chunks);
    EXPECT_TRUE(scan_container(path("c")).sound());
  }
}

TEST_F(ContainerTest, AppendsWithoutWritingTheOldBytesAgain) {
  write(5);
  const std::string old = load("c");
  append(5, 8);
  append(8, 9);
  expect_payloads("c", 9);
  EXPECT_EQ(load("c").substr(0, old.size()), old);
  EXPECT_TRUE(scan_container(path("c")).sound());
}

TEST_F(ContainerTest, ReadsAsBeforeWhileAnAppendIsUnfinished) {
  write(5);
  const std::string old = load("c");
  append(5, 8);
  const std::string whole = load("c");
  for (std::size_t size = old.size() + 1; size < whole.size(); ++size) {
    store("c", whole.substr(0, size));
    const ContainerReader reader(path("c"));
    ASSERT_EQ(reader.chunks().size(), 5U) << size;
    ASSERT_EQ(reader.unfinished_append(), old.size());
    ASSERT_FALSE(scan_container(path("c")).sound()) << size;
  }
  append(5, 8);
  EXPECT_EQ(load("c"), whole);
}

TEST_F(ContainerTest, TwoThatAppendDoSoOneAfterTheOther) {
  write(5);
  std::array<int, 2> begun{};
  ASSERT_EQ(::pipe(begun.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    if (::read(begun[0], &byte, 1) != 1) ::_exit(1);
    // Would see the file as it was, and write over what is being written, if it did not wait.
    append(6, 7);
    ::_exit(0);
  }
  {
    ContainerAppender first(path("c"));
    first.add(kTestChunk, payload(5), ZstdOptions{});
    ASSERT_EQ(::write(begun[1], "x", 1), 1);
    ::usleep(50'000);
    first.finish();
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  expect_payloads("c", 7);
  EXPECT_TRUE(scan_container(path("c")).sound());
}

TEST_F(ContainerTest, FindsACutAtEveryLengthAndAFlipOfEveryBit) {
  write(4);
  const std::string whole = load("c");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    store("c", whole.substr(0, size));
    EXPECT_NE(read_all(), "") << size;
    EXPECT_FALSE(scan_container(path("c")).sound()) << size;
  }
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    store("c", flipped);
    ASSERT_NE(read_all(), "") << bit;
    ASSERT_FALSE(scan_container(path("c")).sound()) << bit;
  }
}

TEST_F(ContainerTest, NamesTheDamagedChunkAndSalvagesTheOthers) {
  write(6);
  const ContainerReader reader(path("c"));
  const ChunkInfo victim = reader.chunks()[2];
  std::string bytes = load("c");
  bytes[victim.offset + 60] = static_cast<char>(bytes[victim.offset + 60] ^ 1);
  store("c", bytes);
  const ContainerScan scan = salvage_container(path("c"), path("saved"));
  ASSERT_EQ(scan.damage.size(), 1U);
  EXPECT_EQ(scan.damage[0].offset, victim.offset);
  EXPECT_THAT(scan.damage[0].message, HasSubstr("chunk 2 (TEST)"));
  const ContainerReader saved(path("saved"));
  const std::vector<ChunkInfo> kept = test_chunks(saved);
  ASSERT_EQ(kept.size(), 5U);
  EXPECT_EQ(saved.chunks().size(), 6U) << "one chunk says that something was lost";
  EXPECT_EQ(saved.chunks()[2].kind, kLostChunk);
  for (std::uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(saved.read(kept[i]), payload(i < 2 ? i : i + 1));
  }
}

TEST_F(ContainerTest, RebuildsTheIndexOfACutFile) {
  write(6);
  const std::string whole = load("c");
  const ContainerReader reader(path("c"));
  const ChunkInfo last = reader.chunks()[5];
  store("c", whole.substr(0, last.offset + 10));
  salvage_container(path("c"), path("c"));
  expect_payloads("c", 5);
}

TEST_F(ContainerTest, SurvivesFlipsAndCutsWhileSalvaging) {
  write(4);
  const std::string whole = load("c");
  std::mt19937 random(9);
  for (int n = 0; n < 300; ++n) {
    std::string bytes = whole.substr(0, random() % (whole.size() + 1));
    for (int k = 0; k < 3 && !bytes.empty(); ++k) bytes[random() % bytes.size()] ^= 0x10;
    store("c", bytes);
    try {
      salvage_container(path("c"), path("saved"));
      EXPECT_TRUE(scan_container(path("saved")).sound());
    } catch (const FormatError& error) {
      EXPECT_THAT(error.what(), HasSubstr("at least one intact chunk"));
    }
  }
}

TEST_F(ContainerTest, RefusesALaterVersionByName) {
  write(1);
  std::string bytes = load("c");
  bytes[8] = 77;
  const std::uint64_t hash = hash64(test::bytes_of(bytes.substr(0, 16)));
  for (std::size_t i = 0; i < 8; ++i) bytes[16 + i] = static_cast<char>(hash >> (8 * i));
  store("c", bytes);
  EXPECT_THAT(read_all(), HasSubstr("version: expected 1 to 1, found 77"));
}

TEST_F(ContainerTest, IsTheOldFileOrAWholeOneWhenKilled) {
  write(3);
  const std::string old = load("c");
  std::mt19937 random(4);
  for (int n = 0; n < 100; ++n) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (;;) write(40);
    }
    ASSERT_GT(child, 0);
    ::usleep(static_cast<useconds_t>(random() % 20000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ASSERT_EQ(read_all(), "") << n;
    ASSERT_TRUE(load("c") == old || ContainerReader(path("c")).chunks().size() == 40U);
  }
}

TEST_F(ContainerTest, IsReadableWhenKilledWhileAppending) {
  std::mt19937 random(4);
  for (int n = 0; n < 100; ++n) {
    write(3);
    const pid_t child = ::fork();
    if (child == 0) {
      append(3, 300);
      ::_exit(0);
    }
    ASSERT_GT(child, 0);
    ::usleep(static_cast<useconds_t>(random() % 5000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const ContainerReader reader(path("c"));
    ASSERT_TRUE(reader.chunks().size() == 3U || reader.chunks().size() == 300U);
    for (const ChunkInfo& chunk : reader.chunks()) reader.read(chunk);
  }
}

}  // namespace
}  // namespace citcat
