#include "formats/io/mapped_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "formats/io/error.h"
#include "formats/io/input.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string sample_text(std::size_t size) {
  std::mt19937 random(7);
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; i += 61) bytes[i] = static_cast<char>(random());
  // Nothing that a compressed file begins with.
  bytes.replace(0, 5, "plain");
  return bytes;
}

std::string text_of(std::span<const std::uint8_t> bytes) { return {bytes.begin(), bytes.end()}; }

class MappedFileTest : public test::TemporaryFolder {
 protected:
  MappedFileTest() { MappedFile::allow(); }
  void TearDown() override {
    if (descriptor_ >= 0) ::close(descriptor_);
    TemporaryFolder::TearDown();
  }
  std::unique_ptr<MappedFile> open(const std::string& name) {
    descriptor_ = ::open(path(name).c_str(), O_RDONLY | O_CLOEXEC);
    return MappedFile::open(descriptor_, path(name));
  }
  void cut(const std::string& name, off_t size) const {
    ASSERT_EQ(::truncate(path(name).c_str(), size), 0);
  }

  int descriptor_ = -1;
};

TEST_F(MappedFileTest, ShowsAnyPartOfTheFile) {
  const std::string bytes = sample_text(20'000'001);
  store("file", bytes);
  const auto file = open("file");
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->size(), bytes.size());
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    const std::size_t offset = random() % bytes.size();
    const std::size_t least = random() % MappedFile::kMaxAtOnce;
    const auto shown = file->at(offset, least);
    ASSERT_GE(shown.size(), std::min(least, bytes.size() - offset));
    ASSERT_EQ(text_of(shown.first(std::min(least, shown.size()))), bytes.substr(offset, least));
  }
  EXPECT_TRUE(file->at(bytes.size(), 1).empty());
  file->check_read();
  file->check_unchanged();
}

TEST_F(MappedFileTest, IsNotMadeOfSmallFilesNorOfPipes) {
  store("small", sample_text(MappedFile::kLeastBytes - 1));
  EXPECT_EQ(open("small"), nullptr);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  EXPECT_EQ(MappedFile::open(ends[0], "pipe"), nullptr);
  for (const int end : ends) ::close(end);
}

TEST_F(MappedFileTest, SaysThatPagesAreLostInPlaceOfEndingTheProgram) {
  store("file", sample_text(2'000'000));
  const auto file = open("file");
  ASSERT_NE(file, nullptr);
  const auto shown = file->at(0, 2'000'000);
  cut("file", 1'000'000);
  file->check_read();  // nothing was looked at
  EXPECT_EQ(shown[1'999'999], 0);
  EXPECT_THAT([&] { file->check_read(); },
              ThrowsMessage<IoError>(HasSubstr("file: cannot be read at or after offset 0")));
  EXPECT_THROW(file->check_unchanged(), IoError);
}

TEST_F(MappedFileTest, FindsThatItWasWrittenTo) {
  store("file", sample_text(2'000'000));
  const auto file = open("file");
  ASSERT_NE(file, nullptr);
  // Another time than that of its making, however coarse the clock of the file system is.
  const std::array<timespec, 2> times{timespec{1'000'000'000, 0}, timespec{1'000'000'000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path("file").c_str(), times.data(), 0), 0);
  EXPECT_THAT([&] { file->check_unchanged(); },
              ThrowsMessage<IoError>(HasSubstr("changed while it was read")));
}

TEST_F(MappedFileTest, LeavesOtherBusErrorsAlone) {
  store("file", sample_text(2'000'000));
  const auto file = open("file");
  ASSERT_NE(file, nullptr);
  // By the signal, or by what a sanitizer makes of it.
  const auto failed = [](int status) { return !WIFEXITED(status) || WEXITSTATUS(status) != 0; };
  EXPECT_EXIT(
      {
        ::raise(SIGBUS);
        ::_exit(0);
      },
      failed, "");
}

TEST_F(MappedFileTest, IsReadInsteadWhereTooManyAreMapped) {
  constexpr std::size_t kSome = 1'000'000;
  const std::string bytes = sample_text(1'200'000);
  store("file", bytes);
  std::vector<std::unique_ptr<InputStream>> all;
  for (int i = 0; i < PageGuard::kMax + 2; ++i)
    all.push_back(std::make_unique<InputStream>(path("file")));
  for (const auto& input : all) EXPECT_EQ(text_of(input->peek(kSome)), bytes.substr(0, kSome));
}

class InputInPlace : public MappedFileTest {};

TEST_F(InputInPlace, IsReadAndHashedInAnyPieces) {
  const std::string bytes = sample_text(21'000'123);
  store("file", bytes);
  InputStream in(path("file"));
  std::mt19937 random(1);
  std::string all;
  while (!in.at_end()) {
    const std::size_t wanted = 1 + random() % InputStream::kMaxPeek;
    const auto ahead = in.peek(wanted);
    ASSERT_EQ(ahead.size(), std::min(wanted, bytes.size() - all.size()));
    const std::size_t taken = 1 + random() % ahead.size();
    all += text_of(ahead.first(taken));
    in.consume(taken);
    ASSERT_EQ(in.offset(), all.size());
  }
  EXPECT_TRUE(all == bytes);
  EXPECT_EQ(in.stored_bytes(), bytes.size());
  EXPECT_EQ(in.stored_hash(), hash128(test::bytes_of(bytes)));
}

TEST_F(InputInPlace, EndsWithAnErrorWhenTheFileIsCutMeanwhile) {
  store("file", sample_text(30'000'000));
  InputStream in(path("file"));
  const auto read_all = [&] {
    while (!in.next_block().empty()) {
    }
  };
  in.next_block();
  cut("file", 5'000'000);
  EXPECT_THAT(read_all, ThrowsMessage<IoError>(HasSubstr("file: cannot be read")));
}

TEST_F(InputInPlace, EndsWithAnErrorWhenTheFileGrowsMeanwhile) {
  store("file", sample_text(3'000'000));
  InputStream in(path("file"));
  in.next_block();
  std::ofstream(path("file"), std::ios::binary | std::ios::app) << "more";
  EXPECT_THAT(([&] {
                while (!in.next_block().empty()) {
                }
              }),
              ThrowsMessage<IoError>(HasSubstr("changed while it was read")));
}

}  // namespace
}  // namespace citcat
