#include "capture/import/byu_capture.h"

#include <gtest/gtest.h>

#include "formats/io/error.h"
#include "tests/unit/capture/shared_data.h"
#include "unit/capture/whole_capture.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

void append(std::vector<std::uint8_t>& bytes, const ByuRecord& record) {
  const auto packed = pack_byu(record);
  bytes.insert(bytes.end(), packed.begin(), packed.end());
}

class ByuCapture : public test::TemporaryFolder {
 protected:
  std::string write_file(const std::vector<std::uint8_t>& bytes) const {
    store("byu", {bytes.begin(), bytes.end()});
    return path("byu");
  }
};

using ByuPentiumCapture = ByuCapture;

TEST_F(ByuCapture, ReadsRecordsAndLeavesOutACutOne) {
  std::vector<std::uint8_t> bytes;
  append(bytes, {0x1000, 0x00, 8, 0, 0, 0xffffffff});  // first delta: unknown
  append(bytes, {0x2000, 0x02, 32, 3, 0, 7});
  append(bytes, {0x3000, 0x03, 4, 1, 0, 5});
  append(bytes, {0x60, 0x10, 1, 0, 0, 1});
  append(bytes, {0, 0x22, 0, 0, 0, 1});  // central agent: no transaction of the processor
  append(bytes, {0, 0x34, 8, 0, 0, 1});
  bytes.insert(bytes.end(), {1, 2, 3});
  CaptureOptions options;
  options.format = "byu";
  const std::string path = write_file(bytes);
  const auto capture = open_capture({path}, options);
  const auto all = test::read_all(*capture);
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[0].op, BusOp::code_read);
  EXPECT_EQ(all[0].clock, 0u);
  EXPECT_EQ(all[1].op, BusOp::data_read);
  EXPECT_EQ(all[1].size, 32);
  EXPECT_TRUE(all[1].has(kLine) && all[1].has(kStoreFill));
  EXPECT_EQ(all[1].clock, 7u);
  EXPECT_EQ(all[2].op, BusOp::data_write);
  EXPECT_EQ(all[2].clock, 12u);
  EXPECT_EQ(all[3].op, BusOp::io_read);
  EXPECT_EQ(all[3].address.value, 0x60u);
  EXPECT_EQ(all[4].op, BusOp::flush);
  EXPECT_EQ(all[4].data[0], 2);
  EXPECT_FALSE(capture->info().has_data);
  const std::string last = capture->info().warnings.at(1);
  EXPECT_NE(last.find("last 3 bytes"), std::string::npos) << last;
}

TEST_F(ByuCapture, NamesTheOffsetOfAnImpossibleRequest) {
  std::vector<std::uint8_t> bytes;
  append(bytes, {0x1000, 0x00, 8, 0, 0, 0});
  append(bytes, {0x1000, 0x55, 8, 0, 0, 0});
  CaptureOptions options;
  options.format = "byu";
  const std::string path = write_file(bytes);
  try {
    test::read_all(*open_capture({path}, options));
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_NE(std::string(error.what()).find(":16: "), std::string::npos) << error.what();
  }
}

TEST_F(ByuPentiumCapture, ReadsBigEndianAddressesAndByteEnables) {
  std::vector<std::uint8_t> bytes = {
      0x00, 0x01, 0x23, 0x40, 0x00, 0x8f,  // burst fetch
      0x00, 0x00, 0x50, 0x08, 0x0f, 0xf0,  // write of the upper four bytes
      0x00, 0x00, 0x00, 0x00, 0xfb, 0x30,  // halt
      0x00, 0x00, 0x03, 0xf8, 0xdf, 0x50,  // read of port 3FDh
      0x00, 0x00};
  CaptureOptions options;
  options.format = "byu-pentium";
  const std::string path = write_file(bytes);
  const auto capture = open_capture({path}, options);
  const auto all = test::read_all(*capture);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].op, BusOp::code_read);
  EXPECT_EQ(all[0].address.value, 0x12340u);
  EXPECT_EQ(all[0].size, 32);
  EXPECT_EQ(all[1].op, BusOp::data_write);
  EXPECT_EQ(all[1].address.value, 0x500cu);
  EXPECT_EQ(all[1].size, 4);
  EXPECT_EQ(all[2].op, BusOp::halt);
  EXPECT_EQ(all[3].op, BusOp::io_read);
  EXPECT_EQ(all[3].address.value, 0x3fdu);
}

// The same machine's run, once as addresses and once as full records.
TEST_F(ByuCapture, EqualsTheFullRecordsInAddressAndKind) {
  const std::string addresses = test::shared_file("machine/lin_rcp_tiny/busC.byu.zst");
  if (addresses.empty()) GTEST_SKIP() << "no shared data: set CITCAT_SHARED";
  const auto capture = open_capture({addresses}, {});
  EXPECT_EQ(capture->info().format, "byu");
  const auto byu = test::read_all(*capture);
  CaptureOptions options;
  options.format = "machine";
  const auto full = test::read_all(
      *open_capture({test::shared_file("machine/lin_rcp_tiny/busC.bin.zst")}, options));
  ASSERT_GT(byu.size(), 1000u);
  // The address trace has one record a line and leaves out the monitor's own window.
  std::size_t at = 0, compared = 0;
  for (const BusTransaction& t : byu) {
    while (at < full.size() && (full[at].op != t.op || full[at].address != t.address)) ++at;
    ASSERT_LT(at, full.size()) << "record " << t.index << " is not in the full capture";
    ++compared;
  }
  EXPECT_EQ(compared, byu.size());
}

}  // namespace
}  // namespace citcat
