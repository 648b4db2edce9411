// `citcat lint` names every kind of damage, and how sure it is.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iomanip>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "golden/process.h"
#include "golden/samples.h"
#include "unit/capture/sample_writers.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kLintedSamples = 20000;

class Lint : public ::testing::Test {
 protected:
  /// Findings by their check.
  using Findings = std::map<std::string, nlohmann::json>;

  Findings lint(const std::vector<std::string>& capture) {
    std::vector<std::string> arguments{"lint"};
    arguments.insert(arguments.end(), capture.begin(), capture.end());
    arguments.push_back("--json");
    const ProcessResult result = run_citcat(arguments, folder_.path());
    const auto json = nlohmann::json::parse(result.out);
    verdict_ = json.at("verdict");
    EXPECT_EQ(result.exit_code, verdict_ == "sound" ? 0 : 1) << result.err;
    Findings findings;
    for (const auto& finding : json.at("findings")) findings[finding.at("check")] = finding;
    return findings;
  }
  /// A file of bus records, from their rows.
  Findings lint_records(const std::string& rows) {
    write_file(folder_.path() / "records.csv", "clk,type,addr,size,flags,data\n" + rows);
    return lint({"records.csv"});
  }
  Findings lint_samples(const test::Samples& samples, const std::vector<std::string>& more = {}) {
    test::write_sigrok(samples, folder_.path() / "samples.sr");
    std::vector<std::string> arguments{"samples.sr"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return lint(arguments);
  }
  static std::string confidence(const Findings& findings, const std::string& check) {
    const auto found = findings.find(check);
    return found == findings.end() ? "not found" : found->second.at("confidence");
  }

  TemporaryFolder folder_;
  std::string verdict_;
};

std::string row(std::uint64_t clock, const char* type, std::uint32_t address, int size,
                const char* flags, const std::string& data) {
  std::ostringstream out;
  out << clock << "," << type << "," << std::hex << address << "," << std::dec << size << ","
      << flags << "," << data << "\n";
  return out.str();
}

std::string repeated(const std::string& byte, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += byte;
  return all;
}

TEST_F(Lint, ASoundCaptureIsSound) {
  const Findings findings = lint_samples(test::read_samples(kArea5150, kLintedSamples));
  EXPECT_EQ(verdict_, "sound");
  for (const auto& [check, finding] : findings) EXPECT_EQ(finding.at("confidence"), "possible");
}

TEST_F(Lint, ACycleThatCannotBe) {
  write_file(folder_.path() / "map.json",
             R"({"bus": "8088-max", "pins": {"QS0": "QS1", "QS1": "QS0"}})");
  const Findings findings =
      lint_samples(test::read_samples(kArea5150, kLintedSamples), {"--channels", "map.json"});
  EXPECT_EQ(confidence(findings, "not-decodable"), "certain");
  EXPECT_EQ(verdict_, "suspect");
}

TEST_F(Lint, ARecordThatCannotBe) {
  const Findings findings = lint_records(row(0, "MEM_RD", 0x1000, 1, "-", "00") +
                                         row(1, "MEM_RD", 0x1008, 16, "L", repeated("00", 16)));
  ASSERT_EQ(confidence(findings, "not-decodable"), "certain");
  EXPECT_EQ(findings.at("not-decodable").at("transaction"), 1);
  EXPECT_THAT(findings.at("not-decodable").at("text"), HasSubstr("line part"));
}

TEST_F(Lint, AClockThatJumps) {
  std::string rows;
  for (std::uint32_t i = 0; i < 2000; ++i)
    rows += row(10 * i + (i < 1500 ? 0 : 1'000'000), "MEM_RD", 4 * i, 4, "-", "00000000");
  const Findings findings = lint_records(rows);
  ASSERT_EQ(confidence(findings, "clock-jump"), "possible");
  EXPECT_EQ(findings.at("clock-jump").at("transaction"), 1500);
  EXPECT_EQ(findings.at("clock-jump").at("clock"), 1'015'000);
}

TEST_F(Lint, AnAddressLineThatIsStuck) {
  std::string rows;
  for (std::uint32_t i = 0; i < 3000; ++i)
    rows += row(10 * i, "MEM_RD", (20 * i) & ~0x40u, 4, "-", "00000000");
  const Findings findings = lint_records(rows);
  ASSERT_EQ(confidence(findings, "stuck-line"), "likely");
  EXPECT_THAT(findings.at("stuck-line").at("text"), HasSubstr("A6 stays low"));
  EXPECT_EQ(verdict_, "suspect");
}

TEST_F(Lint, AddressLinesBelowATransferAreNotJudged) {
  std::string rows;
  for (std::uint32_t i = 0; i < 3000; ++i)
    rows += row(10 * i, "MEM_RD", 32 * i, 16, "L", repeated("00", 16)) +
            row(10 * i + 5, "MEM_RD", 32 * i + 16, 16, "L", repeated("00", 16));
  // The registers of a device, 16 bytes apart.
  for (std::uint32_t i = 0; i < 3000; ++i)
    rows += row(30000 + 10 * i, "MEM_RD", 0xfee00000 + i % 40 * 16, 4, "-", "00000000");
  const Findings findings = lint_records(rows);
  EXPECT_EQ(verdict_, "sound") << nlohmann::json(findings).dump(1);
}

TEST_F(Lint, ADataLineThatIsStuckAndALaneThatIsOff) {
  const auto with = [&](std::uint8_t mask, std::uint8_t off) {
    std::string rows;
    for (std::uint32_t i = 0; i < 3000; ++i) {
      const std::uint32_t hash = i * 2654435761u >> 8;
      std::ostringstream data;
      data << std::hex << std::setfill('0');
      for (unsigned lane = 0; lane < 4; ++lane) {
        unsigned value = hash >> (2 * lane) & 0xff;
        if (lane == 2) value = (value | off) & mask;
        data << std::setw(2) << value;
      }
      rows += row(10 * i, "MEM_WR", 4 * i, 4, "-", data.str());
    }
    return lint_records(rows);
  };
  EXPECT_EQ(confidence(with(0xff, 0), "stuck-data-line"), "not found");
  const Findings stuck = with(0xdf, 0);
  ASSERT_EQ(confidence(stuck, "stuck-data-line"), "likely");
  EXPECT_THAT(stuck.at("stuck-data-line").at("text"), HasSubstr("D21 stays low"));
  EXPECT_EQ(confidence(with(0xff, 0xff), "stuck-data-line"), "likely");
}

TEST_F(Lint, FetchesThatNeverCrossALineThatIsSwapped) {
  const auto fetched = [&](bool swapped) {
    std::string rows;
    for (std::uint32_t i = 0; i < 3000; ++i) {
      const std::uint32_t a = 4 * i;
      const std::uint32_t moved = (a & ~0x60u) | (a >> 1 & 0x20) | (a << 1 & 0x40);
      rows += row(10 * i, "CODE_RD", swapped ? moved : a, 4, "-", "90909090");
    }
    return lint_records(rows);
  };
  EXPECT_EQ(confidence(fetched(false), "line-order"), "not found");
  EXPECT_EQ(confidence(fetched(true), "line-order"), "likely");
}

/// Captures of machines in which nothing was wrong, of every format, bus and cache form at hand.
std::vector<std::string> healthy_captures() {
  std::vector<std::string> found;
  const std::filesystem::path source = CITCAT_SOURCE_DIR;
  for (const char* name : {"ibm5150/area5150.sr", "linux/start.bin.zst", "moo/38.MOO.gz"})
    found.push_back((source / "samples" / name).string());
  const std::filesystem::path shared = source.parent_path() / "shared/data";
  for (const char* folder : {"machine", "logic-analyser-samples"}) {
    std::error_code absent;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(shared / folder, absent)) {
      const std::string name = entry.path().filename().string();
      const bool records = name.starts_with("bus") && entry.file_size() < 2'000'000;
      if (records || name.starts_with("ibm5150")) found.push_back(entry.path().string());
    }
  }
  return found;
}

TEST_F(Lint, EveryHealthyCaptureIsSound) {
  const std::vector<std::string> captures = healthy_captures();
  if (captures.size() < 4)
    std::cout << "../shared/data is not there: samples alone are looked at\n";
  for (const std::string& capture : captures) {
    const Findings findings = lint({capture});
    EXPECT_EQ(verdict_, "sound") << capture << nlohmann::json(findings).dump(1);
  }
}

TEST_F(Lint, ADataLineThatFlickers) {
  std::string rows;
  for (std::uint32_t i = 0; i < 400; ++i)
    rows += row(10 * i, "MEM_RD", 0x1000 + i % 40 * 4, 1, "-", i % 7 == 3 ? "08" : "00");
  const Findings findings = lint_records(rows);
  ASSERT_EQ(confidence(findings, "data-line"), "likely");
  EXPECT_THAT(findings.at("data-line").at("text"), HasSubstr("bit 3"));
}

TEST_F(Lint, DataThatChangesWithoutAWriter) {
  const Findings findings = lint_records(row(0, "MEM_WR", 0x1000, 4, "-", "00000000") +
                                         row(10, "MEM_RD", 0x1000, 4, "-", "00000000") +
                                         row(20, "MEM_RD", 0x1000, 4, "-", "55aa0000"));
  ASSERT_EQ(confidence(findings, "changed-without-writer"), "possible");
  EXPECT_EQ(findings.at("changed-without-writer").at("count"), 2);
  EXPECT_EQ(findings.at("changed-without-writer").at("transaction"), 2);
  EXPECT_EQ(findings.count("changed-code"), 0U);
  EXPECT_EQ(verdict_, "sound");
}

TEST_F(Lint, DataThatChangesEverywhere) {
  std::string rows;
  for (std::uint32_t i = 0; i < 400; ++i) {
    const std::string data = std::to_string(10 + i * 7 % 83);
    rows += row(10 * i, "MEM_RD", 0x1000 * (i % 20), 1, "-", data);
  }
  EXPECT_EQ(confidence(lint_records(rows), "changed-without-writer"), "likely");
  EXPECT_EQ(verdict_, "suspect");
}

TEST_F(Lint, CodeThatChangesWithoutAWriter) {
  const Findings findings = lint_records(row(0, "CODE_RD", 0x1000, 4, "-", "90909090") +
                                         row(10, "CODE_RD", 0x1000, 4, "-", "90f49090"));
  EXPECT_EQ(confidence(findings, "changed-code"), "possible");
}

TEST_F(Lint, ACacheLineThatContradictsItself) {
  const Findings findings =
      lint_records(row(0, "MEM_RD", 0x1000, 16, "L", repeated("11", 16)) +
                   row(10, "MEM_RD", 0x1000, 16, "L", repeated("11", 15) + "22"));
  ASSERT_EQ(confidence(findings, "cache-line"), "possible");
  EXPECT_EQ(findings.at("cache-line").at("count"), 1);
}

TEST_F(Lint, GlitchesOnASlowChannel) {
  test::Samples samples = test::read_samples(kArea5150, kLintedSamples);
  // Vertical synchronisation of the screen, which no decoder looks at.
  const std::size_t channel = samples.channel("VS");
  for (std::size_t s = 0; s < samples.count(); ++s) samples.set(s, channel, s / 40 % 2 != 0);
  for (const std::size_t s : {1010, 7015}) samples.set(s, channel, !samples.level(s, channel));
  const Findings findings = lint_samples(samples);
  ASSERT_EQ(confidence(findings, "glitch"), "possible");
  EXPECT_THAT(findings.at("glitch").at("text"), HasSubstr("'VS'"));
  EXPECT_EQ(findings.at("glitch").at("count"), 2);
  EXPECT_EQ(findings.at("glitch").at("clock"), 1010);
}

TEST_F(Lint, ReadyThatDoesNotCome) {
  test::Samples samples = test::read_samples(kArea5150, kLintedSamples);
  const auto active = [&](std::size_t s) {
    return !samples.level(s, samples.channel("S0")) || !samples.level(s, samples.channel("S1")) ||
           !samples.level(s, samples.channel("S2"));
  };
  const auto queue_still = [&](std::size_t s) {
    return !samples.level(s, samples.channel("QS0")) && !samples.level(s, samples.channel("QS1"));
  };
  // The third clock of a cycle, of two samples each, comes again and again.
  std::size_t at = 5000;
  while (active(at) || !active(at + 1) || !active(at + 6) || !queue_still(at + 5) ||
         !queue_still(at + 6))
    ++at;
  const auto clock = samples.bytes.begin() + static_cast<std::ptrdiff_t>((at + 5) * samples.unit);
  const std::vector<std::uint8_t> one(clock, clock + static_cast<std::ptrdiff_t>(2 * samples.unit));
  std::vector<std::uint8_t> many;
  for (int i = 0; i < 300; ++i) many.insert(many.end(), one.begin(), one.end());
  samples.bytes.insert(clock, many.begin(), many.end());
  const Findings findings = lint_samples(samples);
  EXPECT_EQ(confidence(findings, "many-wait-states"), "possible")
      << nlohmann::json(findings).dump(1);
}

}  // namespace
}  // namespace citcat::testing
