// The samples of a real capture, written in the other containers by code of our own, decode to the
// same transactions.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "capture/bus/source.h"
#include "formats/captures/dsview.h"
#include "formats/io/error.h"
#include "tests/unit/capture/shared_data.h"
#include "unit/capture/sample_writers.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kContainedSamples = 20000;

class Containers : public test::TemporaryFolder {
 protected:
  void SetUp() override {
    const std::string session = test::shared_file("logic-analyser-samples/ibm5150_first110k.sr");
    if (session.empty()) GTEST_SKIP() << "no shared data: set CITCAT_SHARED";
    samples_ = test::read_samples(session, kContainedSamples);
    test::write_sigrok(samples_, folder_ / "cut.sr");
    expected_ = decode({(folder_ / "cut.sr").string()});
    ASSERT_GT(expected_.size(), 1000u);
  }

  static std::vector<char> text(const std::string& s) { return {s.begin(), s.end()}; }

  static std::vector<BusTransaction> decode(const std::vector<std::string>& paths,
                                            const CaptureOptions& options = {}) {
    const auto capture = open_capture(paths, options);
    std::vector<BusTransaction> all;
    BusTransaction t;
    while (capture->next(t)) all.push_back(t);
    return all;
  }

  void expect_same(const std::vector<BusTransaction>& found, bool clocks = true) const {
    ASSERT_EQ(found.size(), expected_.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      const BusTransaction& a = found[i];
      const BusTransaction& b = expected_[i];
      ASSERT_TRUE(a.op == b.op && a.address == b.address && a.size == b.size && a.data == b.data &&
                  a.flags == b.flags && a.position == b.position && (!clocks || a.clock == b.clock))
          << "transaction " << i;
    }
  }

  test::Samples samples_;
  std::vector<BusTransaction> expected_;
};

TEST_F(Containers, DsviewCaptureHasOneBitPlaneAChannel) {
  test::write_dsview(samples_, folder_ / "capture.dsl");
  expect_same(decode({(folder_ / "capture.dsl").string()}));
}

// Version 1 has room for 16 channels only.
TEST_F(Containers, OldDsviewCaptureHasWordsOfSixteenChannels) {
  const auto write = [&](std::size_t bytes) {
    std::string header = "[header]\ncapturefile = data\ntotal samples = 1000\n";
    for (int c = 0; c < 16; ++c)
      header +=
          " probe" + std::to_string(c) + " = " + (c == 7 ? "" : "P" + std::to_string(c)) + "\n";
    std::vector<char> words;
    for (std::size_t s = 0; s < 1000; ++s)
      words.insert(words.end(), {static_cast<char>(samples_.bytes[s * samples_.unit]),
                                 static_cast<char>(samples_.bytes[s * samples_.unit + 1])});
    words.resize(bytes);
    test::write_zip(folder_ / "old.dsl", {{"header", text(header)}, {"data", words}});
  };
  write(2000);
  const auto source = open_dsview((folder_ / "old.dsl").string());
  ASSERT_EQ(source->info().channels.size(), 16u);
  EXPECT_EQ(source->info().channels[3], "P3");
  EXPECT_EQ(source->info().channels[7], "");
  std::size_t sample = 0;
  SampleBlock block;
  while (source->next(block))
    for (std::size_t i = 0; i + 1 < block.bytes.size(); i += 2, ++sample) {
      ASSERT_EQ(block.bytes[i], samples_.bytes[sample * samples_.unit]);
      ASSERT_EQ(block.bytes[i + 1], samples_.bytes[sample * samples_.unit + 1]);
    }
  EXPECT_EQ(sample, 1000u);
  EXPECT_EQ(detect_capture_format((folder_ / "old.dsl").string())->id, "dsview");

  fs::remove(folder_ / "old.dsl");
  write(1999);
  const auto cut = open_dsview((folder_ / "old.dsl").string());
  EXPECT_THROW(
      {
        while (cut->next(block)) {
        }
      },
      FormatError);
}

TEST_F(Containers, DsviewCsvHasRowsOnlyAtChanges) {
  test::write_dsview_csv(samples_, folder_ / "dsview.csv");
  expect_same(decode({(folder_ / "dsview.csv").string()}));
}

class SaleaeContainers : public Containers, public testing::WithParamInterface<int> {};

TEST_P(SaleaeContainers, BinaryExportHasAFileAChannel) {
  const int version = GetParam();
  const fs::path folder = folder_ / "saleae";
  test::write_saleae(samples_, folder, version);
  // Version 0 gives no rate: its clocks are nanoseconds.
  expect_same(decode({folder.string()}), version == 1);
}

INSTANTIATE_TEST_SUITE_P(Versions, SaleaeContainers, testing::Values(0, 1));

class Logic2Containers : public Containers, public testing::WithParamInterface<int> {};

TEST_P(Logic2Containers, ACaptureIsReadAsItWasSaved) {
  test::write_logic2(samples_, folder_ / "capture.sal", GetParam());
  expect_same(decode({path("capture.sal")}), true);
}

INSTANTIATE_TEST_SUITE_P(Versions, Logic2Containers, testing::Values(1, 3));

TEST_F(Containers, SaleaeCsvHasOneRowAChange) {
  test::write_saleae_csv(samples_, folder_ / "saleae.csv");
  expect_same(decode({(folder_ / "saleae.csv").string()}), false);
}

// The analyser was clocked by the machine: one line a state, labels of several channels.
TEST_F(Containers, HpListingHasAFileALabel) {
  const fs::path folder = folder_ / "machine1";
  test::write_hp_listing(samples_, folder, folder_ / "map.json");
  CaptureOptions options;
  options.channel_map_path = (folder_ / "map.json").string();
  const auto found = decode({folder.string()}, options);
  ASSERT_EQ(found.size(), expected_.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_TRUE(found[i].op == expected_[i].op && found[i].address == expected_[i].address &&
                found[i].data == expected_[i].data && found[i].position == expected_[i].position)
        << "transaction " << i;
}

TEST_F(Containers, SeveralFilesAreSegments) {
  const std::string path = (folder_ / "cut.sr").string();
  const auto capture = open_capture({path, path}, {});
  BusTransaction t;
  std::size_t first = 0, second = 0;
  while (capture->next(t)) ++first;
  ASSERT_TRUE(capture->next_segment());
  while (capture->next(t)) ++second;
  EXPECT_FALSE(capture->next_segment());
  EXPECT_EQ(first, expected_.size());
  EXPECT_EQ(second, expected_.size());
}

// ---- what is wrong is named

std::string error_of(const std::vector<std::string>& paths, const CaptureOptions& options = {}) {
  try {
    const auto capture = open_capture(paths, options);
    BusTransaction t;
    while (capture->next(t)) {
    }
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_F(Containers, ACutSessionIsRefused) {
  const fs::path whole = folder_ / "cut.sr", part = folder_ / "part.sr";
  const auto size = fs::file_size(whole);
  for (const auto length : {size - 1, size / 2, std::uintmax_t{100}, std::uintmax_t{4}}) {
    fs::copy_file(whole, part, fs::copy_options::overwrite_existing);
    fs::resize_file(part, length);
    const std::string message = error_of({part.string()});
    EXPECT_NE(message.find("part.sr"), std::string::npos) << length << ": " << message;
  }
}

TEST_F(Containers, ACaptureOfAnUnknownLogic2SaysWhatToExport) {
  test::write_logic2(samples_, folder_ / "capture.sal", 2);
  const std::string message = error_of({path("capture.sal")});
  EXPECT_NE(message.find("digital-0.bin"), std::string::npos) << message;
  EXPECT_NE(message.find("expected version 1 or 3 of what Logic 2 saves, found 2"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("File, Export Raw Data"), std::string::npos) << message;
}

TEST_F(Containers, ACaptureOfLogic2WithoutADescriptionIsRefused) {
  test::write_zip(folder_ / "capture.sal", {{"meta.json", text("{")}});
  const std::string message = error_of({path("capture.sal")});
  EXPECT_NE(message.find("expected a JSON object in meta.json"), std::string::npos) << message;
}

TEST_F(Containers, ACaptureOfLogic2WithoutDigitalChannelsIsRefused) {
  test::write_zip(folder_ / "capture.sal",
                  {{"meta.json", text(R"({"version": 22, "data": {}, "binData": []})")}});
  const std::string message = error_of({path("capture.sal")});
  EXPECT_NE(message.find("expected digital channels"), std::string::npos) << message;
}

TEST_F(Containers, AnEmptyFileIsRefused) {
  const fs::path path = folder_ / "empty.sr";
  std::ofstream(path).close();
  EXPECT_NE(error_of({path.string()}).find("empty.sr"), std::string::npos);
}

TEST_F(Containers, FlippedBytesAreFoundOrHarmless) {
  const fs::path path = folder_ / "flipped.sr";
  std::ifstream in(folder_ / "cut.sr", std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  std::size_t found = 0;
  for (std::size_t at = 0; at < whole.size(); at += whole.size() / 200 + 1) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x5a);
    std::ofstream(path, std::ios::binary) << damaged;
    if (!error_of({path.string()}).empty()) ++found;
  }
  EXPECT_GT(found, 150u);  // the rest are time stamps and the like
}

struct WrongMap {
  const char* what;
  const char* json;
};

class WrongChannelMaps : public Containers, public testing::WithParamInterface<WrongMap> {};

TEST_P(WrongChannelMaps, AreRefusedWithAHint) {
  const fs::path map = folder_ / "map.json";
  std::ofstream(map) << GetParam().json;
  CaptureOptions options;
  options.channel_map_path = map.string();
  const std::string message = error_of({(folder_ / "cut.sr").string()}, options);
  EXPECT_NE(message, "") << GetParam().what;
  EXPECT_NE(message.find("map"), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongChannelMaps,
    testing::Values(
        WrongMap{"no JSON", "bus: 8088"}, WrongMap{"unknown bus", R"({"bus": "6502"})"},
        WrongMap{"unknown pin", R"({"bus": "8088-max", "pins": {"S9": "S0"}})"},
        WrongMap{"unknown channel", R"({"bus": "8088-max", "pins": {"S0": "S00"}})"},
        WrongMap{"a channel twice", R"({"bus": "8088-max", "pins": {"S0": "S1"}})"},
        WrongMap{"QS0 and QS1 exchanged",
                 R"({"bus": "8088-max", "pins": {"QS0": "QS1", "QS1": "QS0"}})"},
        WrongMap{"S0 and S1 exchanged", R"({"bus": "8088-max", "pins": {"S0": "S1", "S1": "S0"}})"},
        WrongMap{"S1 and S2 exchanged", R"({"bus": "8088-max", "pins": {"S1": "S2", "S2": "S1"}})"},
        WrongMap{"AD0 and AD1 exchanged",
                 R"({"bus": "8088-max", "pins": {"AD0": "AD1", "AD1": "AD0"}})"},
        WrongMap{"S0 inverted",
                 R"({"bus": "8088-max", "pins": {"S0": {"channel": "S0", "invert": true}}})"},
        WrongMap{"another channel for S2", R"({"bus": "8088-max", "pins": {"S2": "RDY"}})"}));

}  // namespace
}  // namespace citcat
