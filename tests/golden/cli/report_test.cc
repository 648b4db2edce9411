// `citcat report`: the page holds what the other commands print, needs nothing from elsewhere, and
// a browser shows of it what `cat` shows.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::vector<std::string> text_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// What stands between the first `begin` and the `end` behind it.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = text.find(begin);
  if (from == std::string::npos) return "";
  const std::size_t to = text.find(end, from + begin.size());
  return text.substr(from + begin.size(), to - from - begin.size());
}

OrderedJson data_of(const std::string& page) {
  return OrderedJson::parse(
      between(page, "<script type=\"application/json\" id=\"data-figures\">", "</script>"));
}

/// The arguments of "citcat analyze FILE ...", some of them quoted, with `recording` as the file.
std::vector<std::string> arguments_of(const std::string& command, const std::string& recording) {
  std::vector<std::string> arguments(1);
  bool quoted = false;
  for (const char c : command) {
    if (c == '\'') {
      quoted = !quoted;
    } else if (c == ' ' && !quoted) {
      arguments.emplace_back();
    } else {
      arguments.back() += c;
    }
  }
  arguments.erase(arguments.begin());
  arguments.at(1) = recording;
  return arguments;
}

/// The lines that `cat --format text` has of a record of the moments tool.
void add_lines(const OrderedJson& record, const OrderedJson& code,
               std::vector<std::string>& lines) {
  const auto instruction = record.at("instruction").get<std::uint64_t>();
  const auto first = record.at("iteration").get<std::uint64_t>();
  const auto position = [&](std::uint64_t iteration) {
    return iteration == 0 ? fmt::format("{}", instruction)
                          : fmt::format("{}+{}", instruction, iteration);
  };
  if (record.at("code").is_string()) {
    lines.push_back(
        fmt::format("{:>12} {}", position(first), record.at("event").get<std::string>()));
    return;
  }
  const OrderedJson& c = code.at(record.at("code").get<std::size_t>());
  for (std::uint64_t i = 0; i < record.at("iterations").get<std::uint64_t>(); ++i) {
    std::string line =
        fmt::format("{:>12} {} {:<22} {}", position(first + i), c.at("address").get<std::string>(),
                    c.at("bytes").get<std::string>(), c.at("text").get<std::string>());
    std::istringstream addresses(record.at("addresses").get<std::string>());
    for (std::string a; addresses >> a;) {
      const auto moved = static_cast<std::uint32_t>(std::stoul(a, nullptr, 16) +
                                                    i * record.at("step").get<std::uint64_t>());
      line += fmt::format(" @{:08x}", moved);
    }
    lines.push_back(line);
  }
}

class ReportTest : public CitcatTest {
 protected:
  void SetUp() override {
    import_sample("sample.citcat");
    good({"report", recording(), "-o", page_path()});
    page_ = read_file(page_path());
  }
  std::string recording() const { return file("sample.citcat").string(); }
  std::string page_path() const { return file("report.html").string(); }
  OrderedJson run_data() const { return data_of(page_).at("runs").at(0); }

  std::string page_;
};

TEST_F(ReportTest, HoldsWhatTheOtherCommandsPrint) {
  const OrderedJson data = run_data();
  const auto command = arguments_of(data.at("analyze_command").get<std::string>(), recording());
  EXPECT_EQ(data.at("analyze"), OrderedJson::parse(good(command)));
  EXPECT_EQ(data.at("verify"), OrderedJson::parse(good({"verify", recording(), "--json"})));
  OrderedJson info = OrderedJson::parse(good({"info", recording(), "--json"}));
  info.erase("file");
  info.erase("kind");
  EXPECT_EQ(data.at("info"), info);
  EXPECT_EQ(data.at("verify").at("verdict"), "match");
  // The sample ends within a REP, which no tool counts.
  for (const auto& [name, found] : data.at("analyze").at("tools").items()) {
    if (found.contains("instructions") && name.starts_with("func")) {
      EXPECT_EQ(found.at("instructions"), data.at("analyze").at("instructions"));
    }
  }
}

TEST_F(ReportTest, OfDigestsSaysWhatVerifySays) {
  good({"slim", recording(), "-o", "slim.citcat"});
  good({"report", "slim.citcat", "-o", page_path()});
  const OrderedJson found = data_of(read_file(page_path())).at("runs").at(0).at("verify");
  EXPECT_EQ(found, OrderedJson::parse(good({"verify", "slim.citcat", "--json"})));
  EXPECT_EQ(found.at("verdict"), "match");
}

TEST_F(ReportTest, ReferencesNothingElsewhere) {
  const std::string visible = page_.substr(0, page_.find("<script type=\"application/json\""));
  for (const char* const reference : {" src=", "url(", "@import", "href=\"http"}) {
    EXPECT_EQ(visible.find(reference), std::string::npos) << reference;
  }
  EXPECT_NE(page_.find("default-src 'none'"), std::string::npos);
  EXPECT_LT(page_.size(), 5'000'000u);
}

TEST_F(ReportTest, MomentsAreInstructionsAsCatShowsThem) {
  const std::vector<std::string> all = text_lines(good({"cat", recording(), "--format", "text"}));
  const OrderedJson moments =
      OrderedJson::parse(good({"analyze", recording(), "--tool", "moments", "--json"}));
  const OrderedJson& records = moments.at("records");
  ASSERT_FALSE(moments.at("stretches").empty());
  auto from = all.begin();
  for (const OrderedJson& stretch : moments.at("stretches")) {
    std::vector<std::string> lines;
    const auto first = stretch.at("first").get<std::size_t>();
    for (std::size_t i = 0; i < stretch.at("records").get<std::size_t>(); ++i) {
      add_lines(records.at(first + i), moments.at("code"), lines);
    }
    const auto found = std::search(from, all.end(), lines.begin(), lines.end());
    ASSERT_NE(found, all.end()) << "not in the trace: " << lines.front() << " to " << lines.back();
    from = found + static_cast<std::ptrdiff_t>(lines.size());
  }
  EXPECT_EQ(from, all.end()) << "the end of the run is not among them";
}

TEST_F(ReportTest, SumsOfStretchesDoNotDependOnTheirLength) {
  const auto sums = [&](const std::string& tool) {
    const OrderedJson found =
        OrderedJson::parse(good({"analyze", recording(), "--tool", tool, "--json"}));
    std::map<std::string, std::uint64_t> sum;
    for (const OrderedJson& row : found.at("stretches")) {
      for (const auto& [key, value] : row.items()) {
        if (value.is_number() && key != "from" && key != "process_executions")
          sum[key] += value.get<std::uint64_t>();
      }
    }
    return std::pair(sum, found.at("stretches").size());
  };
  const auto [fine, many] = sums("timeline:every=1");
  const auto [coarse, few] = sums("timeline:stretches=16");
  EXPECT_EQ(fine, coarse);
  EXPECT_GT(many, 100u);
  EXPECT_LE(few, 16u);
  EXPECT_GT(few, 8u);
}

TEST_F(ReportTest, ComparesTwoRanges) {
  good(
      {"report", "--compare", recording() + ":0-300", recording() + ":300-600", "-o", page_path()});
  const OrderedJson runs = data_of(read_file(page_path())).at("runs");
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].at("analyze").at("to"), 300);
  EXPECT_EQ(runs[1].at("analyze").at("from"), 300);
  EXPECT_EQ(runs[0].at("analyze").at("tools").at("count").at("instructions"), 300);
  EXPECT_TRUE(runs[0].at("verify").is_null());
  const OrderedJson together = OrderedJson::parse(between(
      read_file(page_path()), "<script type=\"application/json\" id=\"data-runs\">", "</script>"));
  EXPECT_TRUE(together.at("compared").get<bool>());
  const OrderedJson difference =
      OrderedJson::parse(run({"diff", recording(), recording(), "--from-b", "300", "--json"}).out);
  EXPECT_EQ(together.at("parting").at("a"), difference.at("a"));
  EXPECT_EQ(together.at("parting").at("b"), difference.at("b"));
}

/// The levels of channels `stem``first` to `stem``last` in a sample, as a number.
std::uint32_t lines_at(const OrderedJson& waveform, const std::string& stem, int first, int last,
                       std::uint64_t sample) {
  std::uint32_t value = 0;
  for (int n = first; n <= last; ++n) {
    for (const OrderedJson& channel : waveform.at("channels")) {
      if (channel.at("name") != stem + std::to_string(n)) continue;
      const auto at = sample - waveform.at("first").get<std::uint64_t>();
      value |= (channel.at("levels").get<std::string>().at(at) == '1' ? 1u : 0u) << n;
    }
  }
  return value;
}

TEST_F(ReportTest, ShowsThePinsOfTheTransactionThatTheReplayLeft) {
  const std::string samples = std::string(CITCAT_SOURCE_DIR) + "/samples/ibm5150/";
  std::string state = read_file(samples + "state.json");
  const std::string right = "\"si\":\"0x0000\"";
  ASSERT_NE(state.find(right), std::string::npos);
  state.replace(state.find(right), right.size(), "\"si\":\"0x1234\"");
  write_file(file("wrong.json"), state);
  const std::string wrong = file("wrong.citcat").string(), capture = samples + "area5150.sr";
  good({"import", capture, "--cpu", "8088", "--initial-state", file("wrong.json").string(),
        "--start", "interrupt:0", "-o", wrong});
  EXPECT_EQ(run({"report", wrong, "--capture", capture, "-o", page_path()}).exit_code, 1);
  const OrderedJson data = data_of(read_file(page_path())).at("runs").at(0);
  EXPECT_EQ(data.at("verify"), OrderedJson::parse(run({"verify", wrong, "--json"}).out));
  const OrderedJson& divergence = data.at("verify").at("divergence");
  EXPECT_EQ(data.at("explain").at("rounds").at(0).at("divergence"), divergence);
  EXPECT_EQ(data.at("explain").at("rounds").at(0).at("causes").at(0).at("cause"),
            "initial_register");
  const OrderedJson& waveform = data.at("waveform");
  EXPECT_EQ(waveform.at("transaction"), divergence.at("transaction"));
  // The 8088 shows the address on its lines when a cycle begins, and the byte on AD0-AD7 at its
  // end.
  const auto begin = waveform.at("begin").get<std::uint64_t>(),
             end = waveform.at("end").get<std::uint64_t>();
  const std::uint32_t address =
      lines_at(waveform, "AD", 0, 7, begin) | lines_at(waveform, "A", 8, 19, begin);
  const auto expected = fmt::format("data_write of 1 bytes at {:08x} = {:02x}", address,
                                    lines_at(waveform, "AD", 0, 7, end));
  EXPECT_EQ(divergence.at("expected"), expected);
}

TEST_F(ReportTest, RefusesWhatItCannotShow) {
  const auto refused = [&](const std::vector<std::string>& arguments) {
    const ProcessResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    return result.err;
  };
  EXPECT_NE(refused({"report", "--compare", recording(), recording()}).find("needs -o"),
            std::string::npos);
  EXPECT_NE(refused({"report", recording(), recording(), "-o", page_path()}).find("--compare"),
            std::string::npos);
  EXPECT_NE(refused({"report", recording() + ":20-10", "-o", page_path()}).find("ends before"),
            std::string::npos);
  EXPECT_NE(refused({"report", recording() + ":900000-", "-o", page_path()}).find("the run has"),
            std::string::npos);
  EXPECT_NE(
      refused({"report", recording(), "--sample", "every 2 calls for 1 calls", "-o", page_path()})
          .find("windows of instructions"),
      std::string::npos);
}

/// An 8088 has no pages, no cache and predicts no branches: nobody wants to know how they would do.
TEST_F(ReportTest, ShowsNothingThatTheProcessorDoesNotHave) {
  const OrderedJson tools = run_data().at("analyze").at("tools");
  std::vector<std::string> names;
  for (const auto& [name, found] : tools.items()) names.push_back(name.substr(0, name.find(':')));
  EXPECT_EQ(names, (std::vector<std::string>{"count", "events", "io", "func", "map"}));
}

/// Tools whose figures are exact whatever the windows.
const std::vector<std::string> kExactOfReport = {"count", "events", "io"};

TEST_F(ReportTest, SaysWhatIsASampleAndOfWhat) {
  const OrderedJson exact = run_data().at("analyze");
  EXPECT_FALSE(exact.contains("sample"));
  good({"report", recording(), "--sample", "every 100 for 20, warm 10", "-o", page_path()});
  const OrderedJson data = data_of(read_file(page_path())).at("runs").at(0);
  const auto command = arguments_of(data.at("analyze_command").get<std::string>(), recording());
  EXPECT_EQ(data.at("analyze"), OrderedJson::parse(good(command)));
  const OrderedJson& sample = data.at("analyze").at("sample");
  EXPECT_EQ(sample.at("plan"), "every 100 for 20, warm 10");
  EXPECT_EQ(sample.at("windows"), 7);
  EXPECT_EQ(sample.at("instructions"), 140);
  EXPECT_EQ(sample.at("of"), 621);
  std::map<std::string, std::string> figures;
  for (const OrderedJson& row : sample.at("tools")) figures[row.at("tool")] = row.at("figures");
  EXPECT_EQ(figures.size(), data.at("analyze").at("tools").size());
  for (const std::string& tool : kExactOfReport) {
    EXPECT_EQ(figures.at(tool), "exact");
    EXPECT_EQ(data.at("analyze").at("tools").at(tool), exact.at("tools").at(tool)) << tool;
  }
  EXPECT_EQ(figures.at("map"), "exact in part");
  EXPECT_EQ(figures.at("func"), "sample");
  EXPECT_EQ(data.at("analyze").at("tools").at("func").at("instructions"), 140);
  EXPECT_EQ(data.at("verify").at("verdict"), "match");
}

TEST_F(ReportTest, ShowsAShortRunWholeUnlessToldOtherwise) {
  good({"report", recording(), "--sample", "none", "-o", page_path()});
  EXPECT_EQ(read_file(page_path()), page_);
}

/// The page as a browser has it after its scripts ran; nothing where there is no browser.
struct Browsed {
  std::string document, log;
};
std::optional<Browsed> browse(const std::string& url, const std::filesystem::path& where) {
  if (!std::filesystem::exists("/usr/bin/chromium")) return std::nullopt;
  const ProcessResult result = run_shell(
      fmt::format(
          "HOME=$PWD chromium --headless --no-sandbox --disable-gpu --enable-logging=stderr "
          "--user-data-dir=$PWD/profile --virtual-time-budget=10000 --dump-dom '{}'",
          url),
      where);
  return Browsed{result.out, result.err};
}

TEST_F(ReportTest, ABrowserShowsWhatIsASample) {
  good({"report", recording(), "--sample", "every 100 for 20, warm 10", "-o", page_path()});
  const auto browsed = browse("file://" + page_path() + "#screen=figures",
                              std::filesystem::path(page_path()).parent_path());
  if (!browsed) GTEST_SKIP() << "no chromium here: the page is not looked at by a browser";
  EXPECT_EQ(browsed->log.find("CONSOLE"), std::string::npos) << browsed->log;
  const auto part = [&](const std::string& id) {
    return between(browsed->document, "<div id=\"figures-" + id + "\" class=\"figures-part\">",
                   "class=\"figures-part\"><h3>");
  };
  const std::string windows = "140 of 621 instructions, in 7 windows (every 100 for 20, warm 10)";
  for (const char* const id : {"right", "functions", "memory"}) {
    EXPECT_NE(part(id).find(windows), std::string::npos) << id;
  }
  for (const char* const id : {"events", "mix", "blocks"}) {
    EXPECT_NE(part(id).find("Exact: of all 621 instructions"), std::string::npos) << id;
    EXPECT_EQ(part(id).find(windows), std::string::npos) << id;
  }
  EXPECT_NE(part("memory").find("stored to (exact)"), std::string::npos);
  EXPECT_NE(part("right").find("The replay is the run that was captured"), std::string::npos);
  EXPECT_NE(part("right").find(">16,150<"), std::string::npos);
}

TEST_F(ReportTest, ABrowserShowsAMomentOfIt) {
  const auto browsed =
      browse("file://" + page_path() + "#at=40", std::filesystem::path(page_path()).parent_path());
  if (!browsed) GTEST_SKIP() << "no chromium here: the page is not looked at by a browser";
  EXPECT_EQ(browsed->log.find("CONSOLE"), std::string::npos) << browsed->log;
  const std::string line = between(browsed->document, "aria-current=\"step\"", "</tr>");
  const std::string shown =
      good({"cat", recording(), "--format", "text", "--from", "40", "--to", "41"});
  std::istringstream words(shown.substr(shown.find(" 40 ") + 4));
  std::string address, bytes, mnemonic;
  words >> address >> bytes >> mnemonic;
  EXPECT_NE(line.find(">" + address.substr(3) + "<"), std::string::npos) << line << shown;
  EXPECT_NE(line.find(">" + mnemonic), std::string::npos) << line << shown;
}

/// The page of a long run has the timeline of all of it, and each step of a part.
TEST_F(ReportTest, ABrowserShowsAllOfARunOfWhichItHoldsAPart) {
  good({"report", recording(), "--steps", "200", "-o", page_path()});
  const auto where = std::filesystem::path(page_path()).parent_path();
  const auto held = browse("file://" + page_path() + "#at=150", where);
  if (!held) GTEST_SKIP() << "no chromium here: the page is not looked at by a browser";
  EXPECT_NE(held->document.find("all 621 instructions agree"), std::string::npos);
  EXPECT_NE(held->document.find("13 port writes"), std::string::npos);
  EXPECT_NE(held->document.find("holds each step of instructions 0 to 200"), std::string::npos);
  EXPECT_NE(held->document.find("aria-current=\"step\""), std::string::npos);
  const auto other = browse("file://" + page_path() + "#at=400", where);
  EXPECT_EQ(other->document.find("aria-current=\"step\""), std::string::npos);
  EXPECT_NE(other->document.find("citcat view sample.citcat shows instruction 400"),
            std::string::npos);
  EXPECT_EQ(other->log.find("CONSOLE"), std::string::npos) << other->log;
}

}  // namespace
}  // namespace citcat::testing
