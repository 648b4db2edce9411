// The samples of a real capture, written in the other containers by code of our own, decode to the
// same transactions.

#include <gtest/gtest.h>
#include <zip.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "capture/source.h"
#include "formats/dsview.h"
#include "formats/error.h"
#include "formats/sigrok.h"
#include "tests/unit/capture/shared_data.h"

namespace citcat {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSamples = 20000;
constexpr double kRate = 1e7;

class Containers : public testing::Test {
 protected:
  void SetUp() override {
    const std::string session = test::shared_file("logic-analyser-samples/ibm5150_first110k.sr");
    if (session.empty()) GTEST_SKIP() << "no shared data: set CITCAT_SHARED";
    folder_ =
        fs::temp_directory_path() /
        (std::string("citcat_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    read_samples(session);
    write_session();
    expected_ = decode({(folder_ / "cut.sr").string()});
    ASSERT_GT(expected_.size(), 1000u);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void read_samples(const std::string& session) {
    const auto source = open_sigrok(session);
    names_ = source->info().channels;
    unit_ = source->info().unit_bytes;
    SampleBlock block;
    while (bytes_.size() < kSamples * unit_ && source->next(block))
      bytes_.insert(bytes_.end(), block.bytes.begin(), block.bytes.end());
    bytes_.resize(kSamples * unit_);
  }
  bool level(std::size_t sample, std::size_t channel) const {
    return ((bytes_[sample * unit_ + channel / 8] >> (channel % 8)) & 1) != 0;
  }

  static void add_member(zip_t* zip, const std::string& name, const std::vector<char>& bytes) {
    zip_source_t* source = zip_source_buffer(zip, bytes.data(), bytes.size(), 0);
    zip_file_add(zip, name.c_str(), source, 0);
  }
  void write_zip(const std::string& name,
                 const std::vector<std::pair<std::string, std::vector<char>>>& members) const {
    int error = 0;
    zip_t* zip = zip_open((folder_ / name).c_str(), ZIP_CREATE, &error);
    ASSERT_NE(zip, nullptr);
    for (const auto& member : members) add_member(zip, member.first, member.second);
    ASSERT_EQ(zip_close(zip), 0);
  }
  static std::vector<char> text(const std::string& s) { return {s.begin(), s.end()}; }

  void write_session() const {
    std::string metadata = "[global]\nsigrok version=0.5.2\n\n[device 1]\ncapturefile=logic-1\n";
    metadata += "total probes=" + std::to_string(names_.size()) + "\nsamplerate=10 MHz\n";
    for (std::size_t i = 0; i < names_.size(); ++i)
      metadata += "probe" + std::to_string(i + 1) + "=" + names_[i] + "\n";
    metadata += "unitsize=" + std::to_string(unit_) + "\n";
    write_zip("cut.sr", {{"version", text("2")},
                         {"metadata", text(metadata)},
                         {"logic-1-1", {bytes_.begin(), bytes_.end()}}});
  }

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

  fs::path folder_;
  std::vector<std::string> names_;
  std::size_t unit_ = 0;
  std::vector<std::uint8_t> bytes_;
  std::vector<BusTransaction> expected_;
};

TEST_F(Containers, DsviewCaptureHasOneBitPlaneAChannel) {
  std::string header = "[version]\nversion = 3\n[header]\ndriver = DSLogic\ndevice mode = 0\n";
  header += "capturefile = data\ntotal samples = " + std::to_string(kSamples) + "\n";
  header += "total probes = " + std::to_string(names_.size()) + "\nsamplerate = 10 MHz\n";
  std::vector<std::pair<std::string, std::vector<char>>> members;
  for (std::size_t c = 0; c < names_.size(); ++c) {
    header += " probe" + std::to_string(c) + " = " + names_[c] + "\n";
    std::vector<char> plane((kSamples + 7) / 8);
    for (std::size_t s = 0; s < kSamples; ++s)
      if (level(s, c)) plane[s / 8] = static_cast<char>(plane[s / 8] | 1 << (s % 8));
    // Two blocks, so that the border between them is met.
    const auto middle = plane.begin() + 1000;
    members.push_back({"L-" + std::to_string(c) + "/0", {plane.begin(), middle}});
    members.push_back({"L-" + std::to_string(c) + "/1", {middle, plane.end()}});
  }
  members.push_back({"header", text(header)});
  members.push_back({"session", text("{}")});
  write_zip("capture.dsl", members);
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
      words.insert(words.end(), {static_cast<char>(bytes_[s * unit_]),
                                 static_cast<char>(bytes_[s * unit_ + 1])});
    words.resize(bytes);
    write_zip("old.dsl", {{"header", text(header)}, {"data", words}});
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
      ASSERT_EQ(block.bytes[i], bytes_[sample * unit_]);
      ASSERT_EQ(block.bytes[i + 1], bytes_[sample * unit_ + 1]);
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
  std::ofstream out(folder_ / "dsview.csv");
  out << "; CSV, generated by DSView 1.3.0, sampled on Sat Jan 1 00:00:00 2023\n";
  out << "; Channels (" << names_.size() << "/32)\n; Sample rate: 10 MHz\n";
  out << "; Sample count: 20 K Samples\nTime(s)";
  for (const std::string& name : names_) out << ", " << name;
  out << "\n";
  for (std::size_t s = 0; s < kSamples; ++s) {
    if (s != 0 && std::memcmp(&bytes_[s * unit_], &bytes_[(s - 1) * unit_], unit_) == 0) continue;
    char time[32];
    std::snprintf(time, sizeof time, "%.9f", static_cast<double>(s) / kRate);
    out << time;
    for (std::size_t c = 0; c < names_.size(); ++c) out << "," << (level(s, c) ? 1 : 0);
    out << "\n";
  }
  out.close();
  expect_same(decode({(folder_ / "dsview.csv").string()}));
}

class SaleaeContainers : public Containers, public testing::WithParamInterface<int> {};

TEST_P(SaleaeContainers, BinaryExportHasAFileAChannel) {
  const int version = GetParam();
  const fs::path folder = folder_ / "saleae";
  fs::create_directories(folder);
  for (std::size_t c = 0; c < names_.size(); ++c) {
    std::ofstream out(folder / (names_[c] + ".bin"), std::ios::binary);
    const auto put = [&](const auto& value) {
      out.write(reinterpret_cast<const char*>(&value), sizeof value);
    };
    std::vector<double> times;
    for (std::size_t s = 1; s < kSamples; ++s)
      if (level(s, c) != level(s - 1, c)) times.push_back(static_cast<double>(s) / kRate - 0.0005);
    out.write("<SALEAE>", 8);
    put(std::int32_t{version});
    put(std::int32_t{0});
    if (version == 1) put(std::uint64_t{1});
    put(std::uint32_t{level(0, c) ? 1u : 0u});
    if (version == 1) put(double{kRate});
    put(double{-0.0005});
    put(double{kSamples / kRate - 0.0005});
    put(std::uint64_t{times.size()});
    for (const double time : times) put(time);
  }
  // Version 0 gives no rate: its clocks are nanoseconds.
  expect_same(decode({folder.string()}), version == 1);
}

INSTANTIATE_TEST_SUITE_P(Versions, SaleaeContainers, testing::Values(0, 1));

TEST_F(Containers, SaleaeCsvHasOneRowAChange) {
  std::ofstream out(folder_ / "saleae.csv");
  out << "Time [s]";
  for (const std::string& name : names_) out << "," << name;
  out << "\n";
  for (std::size_t s = 0; s < kSamples; ++s) {
    if (s != 0 && std::memcmp(&bytes_[s * unit_], &bytes_[(s - 1) * unit_], unit_) == 0) continue;
    char time[32];
    std::snprintf(time, sizeof time, "%.9f", static_cast<double>(s) / kRate - 0.001);
    out << time;
    for (std::size_t c = 0; c < names_.size(); ++c) out << "," << (level(s, c) ? 1 : 0);
    out << "\n";
  }
  out.close();
  expect_same(decode({(folder_ / "saleae.csv").string()}), false);
}

// The analyser was clocked by the machine: one line a state, labels of several channels.
TEST_F(Containers, HpListingHasAFileALabel) {
  const fs::path folder = folder_ / "machine1";
  fs::create_directories(folder);
  const auto write_label = [&](const char* label, const std::vector<std::size_t>& channels,
                               int digits) {
    std::ofstream out(folder / (std::string(label) + ".txt"));
    out << label << "\n";
    for (std::size_t s = 0; s < kSamples; s += 2) {
      unsigned value = 0;
      for (std::size_t i = 0; i < channels.size(); ++i)
        value |= (level(s, channels[i]) ? 1u : 0u) << i;
      char number[16];
      std::snprintf(number, sizeof number, "%0*X", digits, value);
      out << number << "\n";
    }
  };
  const auto channel = [&](const char* name) {
    return static_cast<std::size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
  };
  std::vector<std::size_t> address;
  for (std::size_t i = 0; i < 19; ++i) address.push_back(i);
  address.push_back(channel("A19"));
  write_label("ADDR", address, 5);
  write_label("STAT", {channel("S0"), channel("S1"), channel("S2"), channel("INTR")}, 2);
  write_label("QS", {channel("QS0"), channel("QS1")}, 2);
  std::ofstream(folder / "line_num.txt") << "line_num\n0\n";
  std::ofstream(folder_ / "map.json")
      << R"({"bus": "8088-max", "clock_edge": "every", "lanes": {"AD": "ADDR", "A": "ADDR"},
             "pins": {"S0": "STAT0", "S1": "STAT1", "S2": "STAT2", "INTR": "STAT3"}})";
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
