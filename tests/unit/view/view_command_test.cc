// citcat view of recordings: the server by plain requests, the exported file by what is in it.

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "events/archive/recording_file.h"
#include "golden/citcat_test.h"
#include "view/model/run_view.h"

namespace citcat::testing {
namespace {

class ViewCommand : public CitcatTest {
 protected:
  /// Starts the server, makes a request by bash alone, ends the server by Ctrl-C's signal. What it
  /// answered, and below it the status with which the server ended.
  std::string request(const std::string& line, const std::string& host = "$host") const {
    const ProcessResult result = run_shell(
        R"(
set -m
rm -f address
"$CITCAT" view pc.citcat --no-browser >address 2>/dev/null &
for i in $(seq 300); do [ -s address ] && break; sleep 0.1; done
url=$(head -1 address); host=${url#http://}; host=${host%%/*}; token=${url#http://*/}; token=${token%/}
exec 3<>/dev/tcp/${host%:*}/${host#*:}
printf ')" + line +
            R"( HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' "$token" ")" + host +
            R"(" >&3
timeout 50 cat <&3
kill -INT %1
status=0; wait %1 || status=$?
printf '\nended with %s\n' "$status"
)",
        file(""));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  }
  void SetUp() override { import_sample("pc.citcat"); }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(ViewCommand, ServesThePageAndItsAnswersUntilCtrlC) {
  const std::string page = request("GET /%s/");
  EXPECT_TRUE(contains(page, "HTTP/1.1 200 ")) << page;
  EXPECT_TRUE(contains(page, "<script type=\"module\" src=\"main.js\">")) << page;
  EXPECT_TRUE(contains(page, "Content-Security-Policy: default-src 'none'")) << page;
  EXPECT_TRUE(contains(page, "\nended with 0\n")) << page;
  const std::string state = request("GET /%s/api/state?at=100");
  EXPECT_TRUE(contains(state, "\"moment\":\"100~")) << state;
  EXPECT_TRUE(contains(state, "\"name\":\"ax\"")) << state;
  // An 8088 has neither.
  EXPECT_FALSE(contains(state, "\"level\"")) << state;
  EXPECT_FALSE(contains(state, "cr0")) << state;
}

TEST_F(ViewCommand, RefusesWhoHasNoTokenOrMeansAnotherHost) {
  EXPECT_TRUE(contains(request("GET /x%.3s/api/run"), "HTTP/1.1 403 "));
  EXPECT_TRUE(contains(request("GET /%s/api/run", "evil.example"), "HTTP/1.1 403 "));
  EXPECT_TRUE(contains(request("GET /%s/api/run", "evil.example:80"), "HTTP/1.1 403 "));
  EXPECT_TRUE(contains(request("POST /%s/api/run"), "HTTP/1.1 405 "));
  EXPECT_TRUE(contains(request("GET /%s/../etc/passwd"), "HTTP/1.1 404 "));
  const std::string bad = request("GET /%s/api/state?at=nowhere");
  EXPECT_TRUE(contains(bad, "HTTP/1.1 400 ") && contains(bad, "{\"error\":\"at: expected")) << bad;
}

TEST_F(ViewCommand, ExportsOneFileThatRefersToNothingOutside) {
  good({"view", "pc.citcat", "--export", "page.html", "--from", "100", "--to", "400"});
  const std::string page = read_file(file("page.html"));
  EXPECT_TRUE(contains(page, "id=\"exported\""));
  for (const char* outside : {"http:", "https:", "src=", "url(", "\nimport ", "@import"}) {
    // The namespace of pictures is a name and no address.
    std::string rest = page;
    const std::string name = "http://www.w3.org/2000/svg";
    rest.erase(rest.find(name), name.size());
    EXPECT_FALSE(contains(rest, outside)) << outside;
  }
  const ProcessResult behind =
      run({"view", "pc.citcat", "--export", "p.html", "--from", "700", "--to", "800"});
  EXPECT_EQ(behind.exit_code, 2) << behind.err;
}

TEST_F(ViewCommand, TellsRecordingsFromOtherFiles) {
  EXPECT_EQ(run({"view", "pc.citcat", "--format", "csv"}).exit_code, 2);
  EXPECT_EQ(run({"view", "pc.citcat", "--from", "5"}).exit_code, 2);
  write_file(file("run.cnt"), "");
  EXPECT_EQ(run({"view", "run.cnt", "--no-browser"}).exit_code, 2);
}

/// Two instructions, or none, before one that the 386 has not; and no interrupt table.
TEST_F(ViewCommand, TellsOfAComparedRunThatEndsInAShutdown) {
  nlohmann::json registers = {{"esp", 0x8000}, {"eip", 0x5000},  {"eflags", 2},
                              {"cr0", 0x11},   {"idtr.base", 0}, {"idtr.limit", 0}};
  for (const char* name : {"cs", "ss", "ds", "es", "fs", "gs"}) {
    const std::string segment = name;
    registers[segment] = segment == "cs" ? 8 : 16;
    registers[segment + ".base"] = 0;
    registers[segment + ".limit"] = 0xffffffff;
    registers[segment + ".attributes"] = segment == "cs" ? "0xc09b" : "0xc093";
  }
  const nlohmann::json state = {{"cpu", "386"}, {"registers", registers}};
  write_file(file("state.json"), state.dump());
  for (const auto& [count, code] : {std::pair(2, "90900f0b"), std::pair(0, "0f0b9090")}) {
    const std::string at = std::to_string(count);
    write_file(file("end.csv"),
               "#citcat-capture 1 cpu=386 cache=none line=0 bus=4 mask=ffffffff\n"
               "icount,rep,clk,type,addr,size,flags,burst,data\n0,0,0,CODE_RD,5000,4,-,0," +
                   std::string(code) + "\n" + at + ",0,4,SHUTDOWN,0,0,-,0,\n");
    good({"import", "end.csv", "--initial-state", "state.json", "-q", "-o", "end.citcat"});
    good({"view", "end.citcat", "-q", "--export", "end.html"});
    const RecordingFile recording = RecordingFile::open(file("end.citcat"));
    const Symbols symbols;
    view::RunViewOptions options;
    options.check = true;
    view::RunView run(recording, symbols, std::move(options));
    while (run.look_further(100)) {
    }
    const view::Json answer = run.answer("run", view::Query());
    EXPECT_EQ(answer["totals"]["exceptions"], 3) << count;
    EXPECT_EQ(answer["unusual"][0]["moment"], at);
    const view::Json end = run.answer("moment", view::Query(view::Query::Values{{"at", "end"}}));
    EXPECT_EQ(end["moment"], at + "~3");
  }
}

}  // namespace
}  // namespace citcat::testing
