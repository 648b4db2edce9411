// Headers that count the channels of the analyser, and not those that were on.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/captures/dsview.h"
#include "formats/captures/sigrok.h"
#include "formats/io/error.h"
#include "unit/capture/sample_writers.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

class UnusedProbes : public test::TemporaryFolder {
 protected:
  static std::vector<char> text(const std::string& s) { return {s.begin(), s.end()}; }

  std::unique_ptr<SampleSource> sigrok(const std::string& probes, const std::string& unit) const {
    const std::string metadata =
        "[device 1]\ncapturefile=logic-1\nprobe1=CLK\nprobe2=S0\nprobe11=RX\ntotal probes=" +
        probes + "\nunitsize=" + unit + "\n";
    test::write_zip(
        folder_ / (probes + "." + unit),
        {{"version", text("2")}, {"metadata", text(metadata)}, {"logic-1", text("\1\2\3")}});
    return open_sigrok((folder_ / (probes + "." + unit)).string());
  }
};

TEST_F(UnusedProbes, OfASigrokSessionWereNotCaptured) {
  const auto source = sigrok("16", "1");
  EXPECT_EQ(source->info().channels, (std::vector<std::string>{"CLK", "S0"}));
  SampleBlock block;
  ASSERT_TRUE(source->next(block));
  EXPECT_EQ(block.bytes.size(), 3u);
  ASSERT_EQ(source->warnings().size(), 1u);
  EXPECT_NE(source->warnings()[0].find("RX"), std::string::npos);
}

TEST_F(UnusedProbes, OfASigrokSessionThatHoldsThemKeepTheirBits) {
  const auto source = sigrok("5", "1");
  EXPECT_EQ(source->info().channels, (std::vector<std::string>{"CLK", "S0", "", "", ""}));
  EXPECT_TRUE(source->warnings().empty());
  EXPECT_THROW(sigrok("5", "0"), FormatError);
  EXPECT_THROW(sigrok("0", "1"), FormatError);
}

TEST_F(UnusedProbes, OfADsviewCaptureHaveNoNameAndNoPlane) {
  const auto write = [&](const std::string& file, const std::string& names) {
    const std::string header =
        "[version]\nversion = 3\n[header]\ndevice mode = 0\n"
        "total samples = 8\ntotal probes = 16\n" +
        names;
    test::write_zip(folder_ / file,
                    {{"header", text(header)}, {"L-0/0", text("\x55")}, {"L-3/0", text("\x0f")}});
    return (folder_ / file).string();
  };
  const auto source = open_dsview(write("off.dsl", " probe0 = CLK\n probe3 = S0\n"));
  EXPECT_EQ(source->info().channels, (std::vector<std::string>{"CLK", "S0"}));
  EXPECT_THROW(open_dsview(write("missing.dsl", " probe0 = CLK\n probe1 = S0\n")), FormatError);
}

}  // namespace
}  // namespace citcat
