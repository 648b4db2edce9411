// The same samples in several containers, written by an independent tool, are the same capture.

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "capture/bus/source.h"
#include "capture/import/import.h"
#include "events/archive/recording_file.h"
#include "formats/io/error.h"
#include "tests/unit/capture/shared_data.h"
#include "unit/capture/whole_capture.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

bool equal(const BusTransaction& a, const BusTransaction& b) {
  return a.index == b.index && a.clock == b.clock && a.position == b.position &&
         a.address == b.address && a.op == b.op && a.size == b.size && a.flags == b.flags &&
         a.data == b.data;
}

class Renderings : public testing::TestWithParam<const char*> {};

TEST_P(Renderings, GiveTheTransactionsOfTheSession) {
  const std::string session = test::shared_file("logic-analyser-samples/ibm5150_first110k.sr");
  if (session.empty()) GTEST_SKIP() << "no shared data: set CITCAT_SHARED";
  const auto expected = test::read_all(session);
  ASSERT_GT(expected.size(), 5000u);
  const auto found =
      test::read_all(test::shared_file(std::string("logic-analyser-samples/") + GetParam()));
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_TRUE(equal(found[i], expected[i])) << "transaction " << i;
}

INSTANTIATE_TEST_SUITE_P(All, Renderings,
                         testing::Values("ibm5150_first110k.vcd.gz", "ibm5150_first110k.csv.gz",
                                         "ibm5150_first110k_time_header.csv.gz",
                                         "ibm5150_first110k.ols.gz"));

class Recordings : public test::TemporaryFolder {
 protected:
  /// Imports a rendering; the state does not matter here.
  std::string import(const std::string& rendering, bool provenance) {
    store("state.json", R"({"cpu": "8088", "registers": {"cs": 0, "ip": 0}})");
    ImportOptions options;
    options.initial_state_path = path("state.json");
    options.provenance = provenance;
    const std::string out = path(rendering + (provenance ? ".named" : ".bare"));
    import_capture({test::shared_file("logic-analyser-samples/" + rendering)}, options, out);
    return out;
  }
  static std::string bytes(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_F(Recordings, OfAllRenderingsAreTheSameBytesWithoutProvenance) {
  const std::string session = "ibm5150_first110k.sr";
  if (test::shared_file("logic-analyser-samples/" + session).empty())
    GTEST_SKIP() << "no shared data: set CITCAT_SHARED";
  const std::string bare = bytes(import(session, false));
  const std::string named = import(session, true);
  const Hash128 identity = RecordingFile::open(named).identity();
  EXPECT_EQ(RecordingFile::open(named).recording().provenance.files.size(), 1u);
  for (const char* rendering :
       {"ibm5150_first110k.vcd.gz", "ibm5150_first110k.csv.gz",
        "ibm5150_first110k_time_header.csv.gz", "ibm5150_first110k.ols.gz"}) {
    EXPECT_TRUE(bytes(import(rendering, false)) == bare) << rendering;
    EXPECT_EQ(RecordingFile::open(import(rendering, true)).identity(), identity) << rendering;
  }
}

class OtherBuses : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(OtherBuses, AreNamedAndRefused) {
  const std::string path =
      test::shared_file(std::string("logic-analyser-samples/") + GetParam().first);
  if (path.empty()) GTEST_SKIP() << "no shared data: set CITCAT_SHARED";
  try {
    open_capture({path}, {});
    FAIL() << "was taken for an x86 bus";
  } catch (const FormatError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find(GetParam().second), std::string::npos) << message;
    EXPECT_NE(message.find("x86"), std::string::npos) << message;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, OtherBuses,
    testing::Values(std::make_pair("sigrok-dumps_z80_kc85_kc85-20mhz.sr", "Z80"),
                    std::make_pair("sigrok-dumps_z80_kc85_kc85-cpuclk.sr", "Z80"),
                    std::make_pair("sigrok-dumps_mcs48_hp3478a_i8039_sample.sr", "8039"),
                    std::make_pair("sigrok-dumps_lpc_h55_h55_lpc_io_write.sr", "LPC"),
                    std::make_pair("sigrok-dumps_lpc_power9_power9_lpc_firmware_read.sr", "LPC"),
                    std::make_pair("sigrok-dumps_lpc_vultureprog_lpc_vultureprog_snippet.sr",
                                   "LPC")));

}  // namespace
}  // namespace citcat
