// Names that somebody else gave - to symbols, to files - forge nothing in what is written of them:
// every output has the same lines and fields as with harmless names, and commands no terminal.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "golden/citcat_test.h"
#include "tools/export/exporter_list.h"
#include "tools/list/tool_list.h"

namespace citcat::testing {
namespace {

const std::string kOverride = "\xe2\x80\xae";  // U+202E

/// A kernel in ELF (System V ABI, "Object Files") with a function in each 16 KiB, named in turn as
/// `names` say, with a number behind.
std::string elf_with(const std::vector<std::string>& names) {
  constexpr std::uint32_t kBase = 0xc4000000, kSpan = 0x800000, kStep = 0x4000;
  constexpr std::uint32_t kHead = 52, kProgramHead = 32, kSectionHead = 40;
  const auto put = [](std::string& out, std::uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> 8 * i);
  };
  std::string strings(1, '\0'), symbols(16, '\0');
  std::size_t number = 0;
  for (std::uint32_t at = kBase; at < kBase + kSpan; at += kStep, ++number) {
    put(symbols, static_cast<std::uint32_t>(strings.size()), 4);
    put(symbols, at, 4);
    put(symbols, kStep, 4);
    put(symbols, 0x12, 1);  // global function
    put(symbols, 0, 1);
    put(symbols, 1, 2);
    strings += names[number % names.size()] + std::to_string(number) + '\0';
  }
  const std::uint32_t symbols_at = kHead + kProgramHead;
  const auto symbol_bytes = static_cast<std::uint32_t>(symbols.size());
  const std::uint32_t strings_at = symbols_at + symbol_bytes;
  const auto string_bytes = static_cast<std::uint32_t>(strings.size());
  std::string elf = std::string(
                        "\x7f"
                        "ELF\x01\x01\x01") +
                    std::string(9, '\0');
  put(elf, 2, 2);  // an executable
  put(elf, 3, 2);  // of an Intel 386
  put(elf, 1, 4);
  put(elf, kBase, 4);
  put(elf, kHead, 4);
  put(elf, strings_at + string_bytes, 4);
  put(elf, 0, 4);
  for (const std::uint32_t half : {kHead, kProgramHead, 1u, kSectionHead, 4u, 0u})
    put(elf, half, 2);
  for (const std::uint32_t word : {1u, 0u, kBase, kBase, 0u, kSpan, 5u, 0x1000u}) put(elf, word, 4);
  elf += symbols + strings;
  elf += std::string(kSectionHead, '\0');
  const auto section = [&](std::uint32_t type, std::uint32_t flags, std::uint32_t address,
                           std::uint32_t offset, std::uint32_t size, std::uint32_t link,
                           std::uint32_t info, std::uint32_t entry) {
    for (const std::uint32_t word :
         {0u, type, flags, address, offset, size, link, info, 1u, entry}) {
      put(elf, word, 4);
    }
  };
  section(8, 6, kBase, 0, kSpan, 0, 0, 0);               // code, not in the file
  section(2, 0, 0, symbols_at, symbol_bytes, 3, 1, 16);  // symbols
  section(3, 0, 0, strings_at, string_bytes, 0, 0, 0);   // their names
  return elf;
}

const std::vector<std::string>& hostile_names() {
  static const std::vector<std::string> names = {"a\nfn=forged",
                                                 "b\x1b[2J",
                                                 "c" + kOverride + "dcba",
                                                 "=cmd|' /C calc'!A0 ",
                                                 "(1)",
                                                 "d;e;f",
                                                 "f ",
                                                 "g\rh",
                                                 "i\"j,k",
                                                 "\xff\xfe",
                                                 "l\xc2\x9b",
                                                 "+m",
                                                 "@n",
                                                 "-o p",
                                                 "q\n\n1 2 3 "};
  return names;
}

/// Fields of each row of CSV (RFC 4180).
std::vector<std::size_t> csv_shape(const std::string& text) {
  std::vector<std::size_t> rows;
  std::size_t fields = 1;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == ',') ++fields;
    EXPECT_NE(c, '\r');
    if (c != '\n') continue;
    rows.push_back(fields);
    fields = 1;
  }
  EXPECT_FALSE(quoted);
  return rows;
}

std::size_t line_count(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// Nothing but line ends and tabs below a blank, no direction turned, no CSI of 8 bits.
void expect_harmless(const std::string& text, const std::string& where) {
  const bool controls = std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f;
  });
  EXPECT_FALSE(controls) << where;
  for (const char* const mark : {"\xe2\x80\xae", "\xc2\x9b", "\xff"}) {
    EXPECT_EQ(text.find(mark), std::string::npos) << where;
  }
}

class UntrustedNames : public CitcatTest {
 protected:
  void SetUp() override {
    import_linux_sample("linux.citcat");
    write_file(file("hostile.elf"), elf_with(hostile_names()));
    // As many names, that are as different.
    std::vector<std::string> harmless;
    for (std::size_t i = 0; i < hostile_names().size(); ++i) {
      harmless.push_back("name" + std::string(1, static_cast<char>('a' + i)));
    }
    write_file(file("harmless.elf"), elf_with(harmless));
  }
  /// The tools that make a report, as arguments.
  static std::vector<std::string> tools() {
    std::vector<std::string> arguments;
    for (const tools::ToolRow* const tool : tools::tool_list()) {
      const std::string name = tool->name;
      // Those of metrics, and those that ask for what is to be looked for.
      if (tools::find_exporter_tool(name) != nullptr || name == "mdl" || name == "watch") continue;
      arguments.insert(arguments.end(), {"--tool", name});
    }
    return arguments;
  }
  /// What is in a file, or in all files of a folder.
  std::string contents_of(const std::string& name) const {
    if (!std::filesystem::is_directory(file(name))) return read_file(file(name));
    std::string contents;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(file(name))) {
      if (entry.is_regular_file()) contents += read_file(entry.path());
    }
    return contents;
  }
  std::string analyze(const std::string& symbols, const std::string& form) const {
    std::vector<std::string> arguments{"analyze", "linux.citcat", "--symbols", symbols + ".elf"};
    const std::vector<std::string> named = tools();
    arguments.insert(arguments.end(), named.begin(), named.end());
    if (!form.empty()) arguments.push_back(form);
    return good(arguments);
  }
};

TEST_F(UntrustedNames, ForgeNothingInAnyExport) {
  for (const tools::ExporterRow& row : tools::exporter_list()) {
    const std::string exporter = row.tool->name;
    for (const std::string symbols : {"hostile", "harmless"}) {
      good({"replay", "linux.citcat", "--to", "20000", "--symbols", symbols + ".elf", "--format",
            exporter, "-o", symbols + "." + exporter});
    }
    const std::string hostile = contents_of("hostile." + exporter);
    const std::string harmless = contents_of("harmless." + exporter);
    EXPECT_EQ(hostile.find("\x1b[2J"), std::string::npos) << exporter;
    EXPECT_EQ(hostile.find(kOverride), std::string::npos) << exporter;
    const bool is_text = exporter == "callgrind" || exporter == "folded" ||
                         exporter == "speedscope" || exporter == "lackey" || exporter == "din" ||
                         exporter == "tenet" || exporter == "lcov" || exporter == "simpoint";
    if (!is_text) continue;
    expect_harmless(hostile, exporter);
    EXPECT_EQ(line_count(hostile), line_count(harmless)) << exporter;
    if (exporter == "folded") {
      EXPECT_EQ(std::count(hostile.begin(), hostile.end(), ';'),
                std::count(harmless.begin(), harmless.end(), ';'));
      EXPECT_THAT(hostile, ::testing::HasSubstr("d\\x3be\\x3bf"));
      EXPECT_FALSE(std::regex_search(hostile, std::regex(" [0-9.]+ [0-9]+\n")))
          << "two numbers at the end of a line";
    } else if (exporter == "callgrind") {
      EXPECT_EQ(hostile.find("=(1)"), std::string::npos);
      EXPECT_THAT(hostile, ::testing::HasSubstr("=a\\x0afn=forged"));
    }
  }
}

TEST_F(UntrustedNames, ForgeNothingInAnyTable) {
  const std::string text = analyze("hostile", "");
  expect_harmless(text, "text");
  EXPECT_EQ(line_count(text), line_count(analyze("harmless", "")));
  EXPECT_THAT(text, ::testing::HasSubstr("a\\x0afn=forged"));
  EXPECT_EQ(csv_shape(analyze("hostile", "--csv")), csv_shape(analyze("harmless", "--csv")));
  const std::string json = analyze("hostile", "--json");
  expect_harmless(json, "json");
  EXPECT_EQ(line_count(json), 1u);
  // Programs get the names as they are.
  const auto parsed = nlohmann::json::parse(json);
  EXPECT_THAT(parsed.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
              ::testing::HasSubstr("a\\nfn=forged"));
}

TEST_F(UntrustedNames, FormulasAreTold) {
  const ProcessResult hostile =
      run({"analyze", "linux.citcat", "--symbols", "hostile.elf", "--tool", "func", "--csv"});
  EXPECT_EQ(hostile.exit_code, 0);
  EXPECT_THAT(hostile.err, ::testing::HasSubstr("a spreadsheet takes for formulas"));
  const ProcessResult harmless =
      run({"analyze", "linux.citcat", "--symbols", "harmless.elf", "--tool", "func", "--csv"});
  EXPECT_THAT(harmless.err, ::testing::Not(::testing::HasSubstr("spreadsheet")));
}

TEST_F(UntrustedNames, CommandNoTerminal) {
  for (const char* const form : {"", "--csv", "--json"}) {
    const ProcessResult r = run_shell(
        std::string(
            "script -qec \"'$CITCAT' analyze linux.citcat --symbols hostile.elf --tool func ") +
            form + "\" /dev/null | tr -d '\\r'",
        file(""));
    EXPECT_EQ(r.exit_code, 0) << r.err;
    // Colours of the program's own.
    std::string text = r.out;
    for (std::size_t at = 0; (at = text.find("\x1b[", at)) != std::string::npos;) {
      const std::size_t end = text.find('m', at);
      ASSERT_NE(end, std::string::npos);
      EXPECT_EQ(text.substr(at, end - at).find_first_not_of("\x1b[0123456789;K"),
                std::string::npos);
      text.erase(at, end - at + 1);
    }
    expect_harmless(text, form);
  }
}

/// The name of a file is in what is printed of it, in a page's title and in the data behind.
TEST_F(UntrustedNames, OfFilesForgeNothing) {
  const std::string name = "x\n\x1b[31mforged: match\xff" + kOverride + ".citcat";
  std::filesystem::copy_file(file("linux.citcat"), file(name));
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"info"},
                                             {"check"},
                                             {"verify"},
                                             {"explain"},
                                             {"dump", "--to", "3"},
                                             {"analyze", "--tool", "count"}}) {
    std::vector<std::string> hostile = command, harmless = command;
    hostile.insert(hostile.begin() + 1, name);
    harmless.insert(harmless.begin() + 1, "linux.citcat");
    const ProcessResult with = run(hostile), without = run(harmless);
    EXPECT_EQ(with.exit_code, without.exit_code) << command[0];
    // A pipe gets the name as it is, but in one line.
    expect_harmless(with.err, command[0]);
    EXPECT_EQ(line_count(with.out), line_count(without.out)) << command[0];
  }
  good({"report", name, "-o", "page.html"});
  const std::string page = read_file(file("page.html"));
  expect_harmless(page, "page");
  EXPECT_THAT(page, ::testing::HasSubstr("x\\x0a\\x1b[31mforged"));
  const ProcessResult missing = run({"info", "no\n" + name});
  EXPECT_EQ(missing.exit_code, 4);
  expect_harmless(missing.err, "an error");
  EXPECT_EQ(line_count(missing.err), 1u);
}

/// A capture names its channels.
TEST_F(UntrustedNames, OfChannelsForgeNothing) {
  write_file(file("names.csv"),
             "Time,A\x1b[2J,B" + kOverride + ",\"C\nforged: D\"\n0,0,1,0\n1,1,0,1\n");
  const ProcessResult r = run({"import", "names.csv", "--cpu", "8088", "--explain-channels"});
  expect_harmless(r.out, "channels");
  expect_harmless(r.err, "channels");
}

}  // namespace
}  // namespace citcat::testing
