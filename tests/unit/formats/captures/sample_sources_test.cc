// The readers of sample files, each on a small file written here.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "formats/captures/ols.h"
#include "formats/captures/saleae.h"
#include "formats/captures/sample_csv.h"
#include "formats/captures/table_kind.h"
#include "formats/captures/vcd.h"
#include "formats/io/error.h"
#include "formats/io/key_file.h"

namespace citcat {
namespace {

std::unique_ptr<InputStream> stream(std::string_view text) {
  return std::make_unique<InputStream>(
      std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()), "file");
}

struct Samples {
  std::vector<std::string> channels;
  std::vector<std::uint64_t> numbers;
  std::vector<std::uint64_t> levels;
  std::vector<std::string> warnings;
};

Samples read_all(SampleSource& source) {
  Samples all;
  all.channels = source.info().channels;
  const std::size_t unit = source.info().unit_bytes;
  SampleBlock block;
  while (source.next(block)) {
    for (std::size_t i = 0; (i + 1) * unit <= block.bytes.size(); ++i) {
      std::uint64_t value = 0;
      for (std::size_t j = 0; j < unit; ++j)
        value |= std::uint64_t{block.bytes[i * unit + j]} << (8 * j);
      all.levels.push_back(value);
      all.numbers.push_back(block.numbers.empty() ? block.first + i : block.numbers[i]);
    }
  }
  all.warnings = source.warnings();
  return all;
}

template <typename Open>
std::string error_of(Open open, std::string_view text) {
  try {
    read_all(*open(stream(text)));
  } catch (const FormatError& error) {
    return error.what();
  }
  return "";
}

using Numbers = std::vector<std::uint64_t>;

constexpr char kVcdHead[] =
    "$timescale 1 ns $end\n$scope module top $end\n$var wire 4 ! D [3:0] $end\n"
    "$var wire 1 \" CLK $end\n$scope module cpu $end\n$var wire 1 \" CLK $end\n"
    "$upscope $end\n$upscope $end\n$enddefinitions $end\n";

TEST(Vcd, VectorsAreChannelsAndScopesTellEqualNamesApart) {
  const std::string text = std::string(kVcdHead) + "#0 b101 ! 0\"\n#5 1\"\n#7\nb1111 !\n0\"\n";
  const Samples s = read_all(*open_vcd(stream(text)));
  EXPECT_EQ(s.channels, (std::vector<std::string>{"D0", "D1", "D2", "D3", "CLK", "cpu.CLK"}));
  EXPECT_EQ(s.numbers, (Numbers{0, 5, 7}));
  EXPECT_EQ(s.levels, (Numbers{0x05, 0x35, 0x0f}));
}

TEST(Vcd, NumbersOfSimulatorsBelongToTheBitsTheyName) {
  const auto source = open_vcd(
      stream("$timescale 1ns $end\n$var wire 1 ! AD0 [0] $end\n$var wire 1 \" AD1 [0:0] $end\n"
             "$var wire 1 # AD [2] $end\n$var wire 2 % QS<1:0> $end\n$var wire 2 & m[3][0:1] "
             "$end\n$enddefinitions $end\n#0 0!\n"));
  EXPECT_EQ(source->info().channels,
            (std::vector<std::string>{"AD0", "AD1", "AD[2]", "QS0", "QS1", "m[3]1", "m[3]0"}));
}

TEST(Vcd, UnknownLevelsReadAsZeroAndAreCounted) {
  const Samples s = read_all(*open_vcd(stream(std::string(kVcdHead) + "#0 bx1 ! z\"\n")));
  EXPECT_EQ(s.levels, (Numbers{0x01}));
  ASSERT_EQ(s.warnings.size(), 1u);
  // x extends to the left: three bits of the vector and the clock.
  EXPECT_NE(s.warnings[0].find("4 levels"), std::string::npos) << s.warnings[0];
}

TEST(Vcd, TimesOfAKnownRateAreSampleNumbers) {
  const std::string text =
      "$comment\n Acquisition with 1/1 channels at 10 MHz\n$end\n"
      "$timescale 1 ns $end\n$var wire 1 ! A $end\n$enddefinitions $end\n"
      "#0 0!\n#105 1!\n#210 0!\n";
  EXPECT_EQ(read_all(*open_vcd(stream(text))).numbers, (Numbers{0, 1, 2}));
}

TEST(Vcd, ErrorsShowBytesThatAreNoTextAsNumbers) {
  EXPECT_NE(error_of(open_vcd, "\x93\x01\x7f~x").find("found '\\x93\\x01\\x7f~x'"),
            std::string::npos);
  EXPECT_NE(error_of(open_vcd, std::string(100, '\xff')).find("\\xff'"), std::string::npos);
}

TEST(Vcd, SaysWhenTheFileEndsWithinALine) {
  const std::string whole = std::string(kVcdHead) + "#0 b101 ! 0\"\n#5 1\"\n";
  EXPECT_TRUE(read_all(*open_vcd(stream(whole))).warnings.empty());
  const Samples cut = read_all(*open_vcd(stream(whole.substr(0, whole.size() - 1))));
  ASSERT_EQ(cut.warnings.size(), 1u);
  EXPECT_NE(cut.warnings[0].find("may be cut"), std::string::npos) << cut.warnings[0];
}

TEST(Vcd, ErrorsNameTheLine) {
  const std::string head = kVcdHead;
  EXPECT_EQ(error_of(open_vcd, head + "#5 1\"\n#4 0\"\n").substr(0, 8), "file:11:");
  EXPECT_NE(error_of(open_vcd, head + "#0 1?\n").find("identifier"), std::string::npos);
  EXPECT_NE(error_of(open_vcd, head + "#0 b11111 !\n").find("up to 4 bits"), std::string::npos);
  EXPECT_NE(error_of(open_vcd, "$var wire 1 ! A").find("end of the file"), std::string::npos);
  EXPECT_NE(error_of(open_vcd, "").find("end of the file"), std::string::npos);
}

TEST(Vcd, TimesAndTimeScalesMayBeFractions) {
  const std::string head =
      "$timescale 0.5 fs $end\n$comment Acquisition with 1/1 channels at 1000 GHz $end\n"
      "$var wire 1 ! A $end\n$enddefinitions $end\n";
  const Samples s = read_all(*open_vcd(stream(head + "#0 0!\n#4000.5 1!\n# 8000 0 !\n")));
  EXPECT_EQ(s.numbers, (Numbers{0, 2, 4}));
  EXPECT_EQ(s.levels, (Numbers{0, 1, 0}));
  ASSERT_EQ(s.warnings.size(), 1u);
  EXPECT_NE(s.warnings[0].find("rounded"), std::string::npos) << s.warnings[0];
  for (const char* scale : {"3 ns", "1.5us", "10 ps", "100s"}) {
    const std::string text = std::string("$timescale ") + scale +
                             " $end $var wire 1 ! A $end $enddefinitions $end #0 1!\n";
    EXPECT_EQ(error_of(open_vcd, text), "") << scale;
  }
  EXPECT_NE(error_of(open_vcd, "$timescale 1 mile $end"), "");
}

TEST(Vcd, TimesBeforeATriggerAreNegative) {
  const std::string head = "$var wire 1 ! A $end $enddefinitions $end\n";
  const Samples s = read_all(*open_vcd(stream(head + "#-7 0!\n#-2 1!\n#3 0!\n")));
  EXPECT_EQ(s.numbers, (Numbers{0, 5, 10}));
  EXPECT_NE(error_of(open_vcd, head + "#-2 0!\n#-7 1!\n").find("rise"), std::string::npos);
  EXPECT_NE(error_of(open_vcd, head + "#5 0!\n#-7 1!\n").find("rise"), std::string::npos);
}

TEST(Vcd, WhileTheDumpIsOffNothingChanges) {
  const Samples s = read_all(*open_vcd(
      stream("$var wire 1 ! CLK $end $var wire 1 # S0 $end $enddefinitions $end\n"
             "#0 $dumpvars 1! 1# $end\n#2 0!\n#3 $dumpoff x! x# $end\n#9 $dumpon 1! 1# $end\n")));
  EXPECT_EQ(s.levels, (Numbers{3, 2, 3}));
  EXPECT_EQ(s.numbers, (Numbers{0, 2, 9}));
  ASSERT_EQ(s.warnings.size(), 1u);
  EXPECT_NE(s.warnings[0].find("$dumpoff"), std::string::npos) << s.warnings[0];
}

TEST(Vcd, LevelsOfVhdlAreStrongOrWeak) {
  const Samples s = read_all(*open_vcd(
      stream("$var wire 4 ! AD [ 3 : 0 ] $end $enddefinitions $end\n#0 bLH01 !\n#1 bUW-1 !\n")));
  EXPECT_EQ(s.channels, (std::vector<std::string>{"AD0", "AD1", "AD2", "AD3"}));
  EXPECT_EQ(s.levels, (Numbers{5, 1}));
  ASSERT_EQ(s.warnings.size(), 1u);
  EXPECT_EQ(s.warnings[0].substr(0, 8), "3 levels");
}

TEST(SampleCsv, WordsBecomeAChannelABit) {
  const Samples s = read_all(*open_sample_csv(
      stream("State Number,ADDR,CLK,Mnemonic\n0,1F,1,PUSH AX\n1,0x20,0,\"NOP\"\n")));
  ASSERT_EQ(s.channels.size(), 9u);
  EXPECT_EQ(s.channels[0], "ADDR0");
  EXPECT_EQ(s.channels[8], "CLK");
  EXPECT_EQ(s.levels, (Numbers{0x11f, 0x020}));
}

constexpr char kPrinted[] =
    "Sample  Timestamp      ADDR   STAT  Mnemonic     Extra\n"
    "------  -------------  -----  ----  -----------  -----\n"
    "    -1  0 ps           FFFF0  1     JMP FAR      7\n"
    "     0  1,260.500 ns   0E05B  0                  7\n";

TEST(SampleCsv, PrintedTablesAreReadUpToTheirText) {
  const Samples s = read_all(*open_sample_csv(stream(kPrinted)));
  ASSERT_EQ(s.channels.size(), 21u);
  EXPECT_EQ(s.channels[0], "ADDR0");
  EXPECT_EQ(s.channels[20], "STAT");
  EXPECT_EQ(s.levels, (Numbers{0x1ffff0, 0x00e05b}));
  EXPECT_EQ(s.numbers, (Numbers{0, 1}));
  ASSERT_EQ(s.warnings.size(), 1u);
  EXPECT_NE(s.warnings[0].find("Extra"), std::string::npos) << s.warnings[0];
}

TEST(SampleCsv, PrintedTablesAreKnownByTheirFirstColumn) {
  const auto rate = [](std::string_view text) {
    return rate_sample_csv(
        std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
  };
  EXPECT_GT(rate(kPrinted), 0);
  EXPECT_EQ(rate("a letter to a friend\n0 is a number\n1 is one too\n"), 0);
}

TEST(SampleCsv, PrintedTablesMustBeWhole) {
  const std::string head = "Sample ADDR DATA\n0 12 34\n";
  EXPECT_NE(error_of(open_sample_csv, head + "1 12\n").find("file:3:"), std::string::npos);
  EXPECT_NE(error_of(open_sample_csv, head + "1 12 34 56\n").find("more"), std::string::npos);
  EXPECT_NE(error_of(open_sample_csv, head + "1 12 345\n").find("8 bits"), std::string::npos);
}

TEST(SampleCsv, ChannelNamesOfACommentServeAHeaderThatHasNone) {
  const Samples s =
      read_all(*open_sample_csv(stream("; Channels (2/2): CLK, S0\nlogic,logic\n0,1\n1,1\n")));
  EXPECT_EQ(s.channels, (std::vector<std::string>{"CLK", "S0"}));
  EXPECT_EQ(s.levels, (Numbers{2, 3}));
}

TEST(SampleCsv, ChangesAreNumberedByTheirTimes) {
  const Samples s = read_all(*open_sample_csv(
      stream("; generated by DSView\n; Sample rate: 1 MHz\nTime(s), A\n0,0\n0.000003,1\n")));
  EXPECT_EQ(s.channels, (std::vector<std::string>{"A"}));
  EXPECT_EQ(s.numbers, (Numbers{0, 3}));
}

TEST(SampleCsv, LibsigroksTimesAreNoChannelAndTellTheSample) {
  const Samples s = read_all(*open_sample_csv(
      stream("; CSV generated by libsigrok 0.5.2\n; Channels (2/2): CLK, S0\n; Samplerate: 24 MHz\n"
             "nanoseconds,logic,logic,Trigger\n0,0,1,0\n42,1,1,0\n83,0,0,0\n417,1,0,1\n")));
  EXPECT_EQ(s.channels, (std::vector<std::string>{"CLK", "S0"}));
  EXPECT_EQ(s.levels, (Numbers{2, 3, 0, 1}));
  EXPECT_EQ(s.numbers, (Numbers{0, 1, 2, 10})) << "rows like the one before are left out";
}

TEST(SampleCsv, TimesWithoutARateLeaveEveryRowASample) {
  const Samples s = read_all(*open_sample_csv(stream("Microseconds,A,B\n0,0,1\n7,1,1\n")));
  EXPECT_EQ(s.channels, (std::vector<std::string>{"A", "B"}));
  EXPECT_EQ(s.numbers, (Numbers{0, 1}));
}

TEST(SampleCsv, AByteOrderMarkIsNoPartOfTheFirstName) {
  const Samples s =
      read_all(*open_sample_csv(stream("\xef\xbb\xbf"
                                       "CLK,S0\n0,1\n1,1\n")));
  EXPECT_EQ(s.channels, (std::vector<std::string>{"CLK", "S0"}));
}

TEST(SampleCsv, ARowThatTheFileEndsInMayBeCut) {
  EXPECT_NE(error_of(open_sample_csv, "A,B\n0,1\n0").find("it may be cut"), std::string::npos);
  EXPECT_EQ(error_of(open_sample_csv, "A,B\n0,1\n0\n0,1\n").find("cut"), std::string::npos);
}

TEST(SampleCsv, ErrorsNameLineAndColumn) {
  EXPECT_EQ(error_of(open_sample_csv, "A,B\n0,1\n0\n").substr(0, 7), "file:3:");
  const std::string wrong = error_of(open_sample_csv, "A,B\n0,1\n0,2\n");
  EXPECT_NE(wrong.find("column 'B'"), std::string::npos) << wrong;
  EXPECT_NE(error_of(open_sample_csv, "A,B\n").find("no row"), std::string::npos);
}

TEST(Ols, LevelsAndNumbers) {
  const Samples s = read_all(*open_ols(stream(";Rate: 1000\n;Channels: 12\n00a@3\nfff@7\n;end\n")));
  EXPECT_EQ(s.channels.size(), 12u);
  EXPECT_EQ(s.numbers, (Numbers{3, 7}));
  EXPECT_EQ(s.levels, (Numbers{0x00a, 0xfff}));
}

TEST(Ols, ErrorsNameTheLine) {
  EXPECT_EQ(error_of(open_ols, ";Channels: 4\n1@5\n2@5\n").substr(0, 7), "file:3:");
  EXPECT_NE(error_of(open_ols, ";Channels: 4\n1\n").find("@"), std::string::npos);
  EXPECT_NE(error_of(open_ols, "1@1\n").find("Channels"), std::string::npos);
  EXPECT_NE(error_of(open_ols, ";Channels: 8\n100@1\n").find("8 channels"), std::string::npos);
}

TEST(Ols, BlanksAroundLevelsAreNone) {
  const Samples s = read_all(*open_ols(stream(";Channels: 8\r\n 0f @3 \r\n \r\nf0@ 4\r\n")));
  EXPECT_EQ(s.numbers, (Numbers{3, 4}));
  EXPECT_EQ(s.levels, (Numbers{0x0f, 0xf0}));
}

std::string saleae_file(bool initial, std::vector<double> times, std::uint32_t type = 0) {
  std::string file = "<SALEAE>";
  const auto put = [&](const auto& value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    file.append(bytes, sizeof value);
  };
  put(std::uint32_t{0});
  put(type);
  put(std::uint32_t{initial});
  put(0.0);
  put(1.0);
  put(std::uint64_t{times.size()});
  for (const double time : times) put(time);
  return file;
}

TEST(Saleae, ChannelsAreMergedByTime) {
  const std::string a = saleae_file(false, {1e-9, 5e-9}), b = saleae_file(true, {5e-9, 9e-9});
  std::vector<SaleaeChannel> channels;
  channels.push_back({"A", stream(a)});
  channels.push_back({"B", stream(b)});
  const Samples s = read_all(*open_saleae(std::move(channels)));
  EXPECT_EQ(s.numbers, (Numbers{0, 1, 5, 9}));
  EXPECT_EQ(s.levels, (Numbers{2, 3, 0, 2}));
}

TEST(Saleae, RefusesAnalogFilesFallingTimesAndCutFiles) {
  const auto open = [](std::unique_ptr<InputStream> input) {
    std::vector<SaleaeChannel> channels;
    channels.push_back({"A", std::move(input)});
    return open_saleae(std::move(channels));
  };
  EXPECT_NE(error_of(open, saleae_file(false, {}, 1)).find("digital"), std::string::npos);
  EXPECT_NE(error_of(open, saleae_file(false, {5e-9, 1e-9})).find("rise"), std::string::npos);
  const std::string whole = saleae_file(false, {1e-9, 5e-9});
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_NE(error_of(open, whole.substr(0, length)), "") << length;
}

TEST(SampleRate, IsReadWithItsUnit) {
  EXPECT_DOUBLE_EQ(parse_sample_rate("9.52381 MHz"), 9523810);
  EXPECT_DOUBLE_EQ(parse_sample_rate("1 kHz"), 1000);
  EXPECT_DOUBLE_EQ(parse_sample_rate("500000"), 500000);
  EXPECT_DOUBLE_EQ(parse_sample_rate("fast"), 0);
}

TEST(KeyFile, GroupsAndValues) {
  const KeyFile file = parse_key_file("# c\n[a]\n k = v \n[b]\nn=7\n", "f");
  ASSERT_EQ(file.groups.size(), 2u);
  EXPECT_EQ(KeyFile::value(file.groups[0], "k"), "v");
  EXPECT_EQ(key_number(file.groups[1], "n", 10, "f"), 7u);
  EXPECT_THROW(key_number(file.groups[1], "n", 6, "f"), FormatError);
  EXPECT_THROW(parse_key_file("[a]\nnonsense\n", "f"), FormatError);
}

}  // namespace
}  // namespace citcat
