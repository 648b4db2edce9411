// Images of QEMU, and the state of a machine in one. The image with a state is built here, cluster
// by cluster, by docs/interop/qcow2.rst of QEMU.

#include "cli/record/qcow2_file.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "formats/io/error.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

constexpr std::size_t kClusterBytes = 65536;

std::string word(std::uint64_t value, int bytes) {
  std::string text;
  for (int n = bytes - 1; n >= 0; --n) text += static_cast<char>(value >> (8 * n));
  return text;
}

/// The end of a machine's state as QEMU 10.0 writes it: a section of memory, that of record/replay,
/// and another behind it.
std::string some_state() {
  const std::string section = word(0x7e, 4);
  return std::string(1000, 'm') + "\x04" + section + std::string("\x06replay", 7) + word(0, 4) +
         word(3, 4) + word(0, 16) + word(4640749148, 8) + word(0, 8) + word(0xffffffff, 4) +
         word(0, 1) + word(421072, 8) + word(57, 8) + std::string(8, '\xff') + "\x7e" + section +
         "\x04" + std::string(500, 'd');
}

/// An image of 1 MiB with one snapshot, whose state takes two clusters, the second one in use.
std::string image_with_state(const std::string& state) {
  const auto padded = [](std::string text) {
    text.resize(kClusterBytes);
    return text;
  };
  const std::string head = "QFI\xfb" + word(3, 4) + word(0, 8) + word(0, 4) + word(16, 4) +
                           word(1 << 20, 8) + word(0, 4) + word(1, 4) + word(0, 8) + word(0, 8) +
                           word(1, 4) + word(1, 4) + word(1 * kClusterBytes, 8);
  const std::string snapshot =
      word(2 * kClusterBytes, 8) + word(2, 4) + word(1, 2) + word(8, 2) + word(0, 16) + word(0, 4) +
      word(16, 4) + word(kClusterBytes + state.size(), 8) + word(1 << 20, 8) + "1" + "citcat-1";
  const std::string first = word(0, 8) + word(3 * kClusterBytes | 1ULL << 63, 8);
  const std::string second = word(0, 8) + word(4 * kClusterBytes | 1ULL << 63, 8);
  return padded(head) + padded(snapshot) + padded(first) + padded(second) + padded(state);
}

class Qcow2FileTest : public TemporaryFolder {};

TEST_F(Qcow2FileTest, ThatWasMadeHasTheSizeOfWhatIsBelow) {
  store("raw", std::string(70000, 'r'));
  EXPECT_FALSE(disk_image(path("raw")).is_qcow2);
  EXPECT_EQ(disk_image(path("raw")).bytes, 70144U);  // whole sectors
  write_qcow2(path("over"), 70144, path("raw"));
  EXPECT_TRUE(disk_image(path("over")).is_qcow2);
  EXPECT_EQ(disk_image(path("over")).bytes, 70144U);
  EXPECT_FALSE(find_machine_state(path("over"), "citcat-0"));
  EXPECT_THROW(write_qcow2(path("over"), 1), IoError) << "replaces nothing";
}

TEST_F(Qcow2FileTest, HoldsTheStateOfAMachineWithItsPlaceInTheLog) {
  store("image", image_with_state(some_state()));
  const auto state = find_machine_state(path("image"), "citcat-1");
  ASSERT_TRUE(state);
  EXPECT_EQ(state->bytes, kClusterBytes + some_state().size());
  EXPECT_EQ(state->log_offset, 421072U);
  EXPECT_EQ(state->disk_requests, 57U);
  EXPECT_FALSE(find_machine_state(path("image"), "citcat-2"));
}

TEST_F(Qcow2FileTest, WithAnyByteOfItsTablesChangedIsReadToSomeEnd) {
  const std::string whole = image_with_state(some_state());
  for (const std::size_t begin : {std::size_t{0}, kClusterBytes, 2 * kClusterBytes})
    for (std::size_t at = begin; at < begin + 80; at += 4) {
      std::string changed = whole;
      changed[at] = static_cast<char>(~changed[at]);
      store("image", changed);
      EXPECT_NO_THROW((void)find_machine_state(path("image"), "citcat-1")) << at;
    }
}

}  // namespace
}  // namespace citcat::test
