// citcat view of recordings: the server by plain requests, the exported file by what is in it.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "golden/citcat_test.h"

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

}  // namespace
}  // namespace citcat::testing
