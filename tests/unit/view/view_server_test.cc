// The local server with clients that mean no good.

#include "view/server/view_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace citcat::view {
namespace {

/// A connection that is told everything byte by byte.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const timeval patience{20, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~RawClient() { ::close(socket_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void send(const std::string& text) const {
    ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
  }
  /// Until the server closes the connection.
  std::string rest() const {
    std::string all;
    char part[4096];
    for (ssize_t n; (n = ::recv(socket_, part, sizeof part, 0)) > 0;) {
      all.append(part, static_cast<std::size_t>(n));
    }
    return all;
  }

 private:
  int socket_;
};

class ViewServerTest : public ::testing::Test {
 protected:
  ViewServerTest() {
    ServerOptions options;
    options.most_waiting = 2;
    options.most_connections = 4;
    options.silence = std::chrono::seconds(1);
    server_.emplace([](std::string_view) { return std::optional<std::string_view>("page"); },
                    [this](const std::string& question, const ViewServer::Parameters&) {
                      ++answered_;
                      return ServedAnswer{200, question};
                    },
                    options);
    const std::string url = server_->url();
    port_ = static_cast<std::uint16_t>(std::stoi(url.substr(url.find_last_of(':') + 1)));
    host_ = "127.0.0.1:" + std::to_string(port_);
    token_ = url.substr(url.size() - 33, 32);
    thread_ = std::thread(
        [this] { server_->serve([this] { return ended_.load(); }, [] { return false; }); });
  }
  ~ViewServerTest() override {
    ended_ = true;
    thread_.join();
  }
  /// What answers these lines, and the end of the header behind them.
  std::string ask(const std::string& lines) const {
    const RawClient client(port_);
    client.send(lines + "Connection: close\r\n\r\n");
    return client.rest();
  }
  std::string get(const std::string& target, const std::string& more = "") const {
    return ask("GET " + target + " HTTP/1.1\r\nHost: " + host_ + "\r\n" + more);
  }
  static std::string status(const std::string& response) { return response.substr(0, 12); }

  std::atomic<bool> ended_ = false;
  std::atomic<int> answered_ = 0;
  std::optional<ViewServer> server_;
  std::uint16_t port_ = 0;
  std::string host_, token_;
  std::thread thread_;
};

TEST_F(ViewServerTest, AnswersWhoKnowsTheToken) {
  EXPECT_EQ(status(get("/" + token_ + "/api/run")), "HTTP/1.1 200");
  EXPECT_EQ(status(get("/" + token_ + "/")), "HTTP/1.1 200");
  EXPECT_EQ(answered_, 1);
}

TEST_F(ViewServerTest, RefusesOthersBeforeAnythingIsAsked) {
  const std::string wrong(32, '0'), run = "/api/run";
  for (const std::string& target :
       {"/" + wrong + run, "/" + token_.substr(0, 31) + run, "/" + token_ + "0" + run,
        std::string("//") + run, std::string("/")}) {
    EXPECT_EQ(status(get(target)), "HTTP/1.1 403") << target;
  }
  const std::string line = "GET /" + token_ + run + " HTTP/1.1\r\n";
  for (const std::string host : {"evil.example", "127.0.0.1", "127.0.0.1:1", "localhost:1", ""}) {
    EXPECT_EQ(status(ask(line + "Host: " + host + "\r\n")), "HTTP/1.1 403") << host;
  }
  EXPECT_EQ(status(ask(line)), "HTTP/1.1 403");
  // Whole addresses are for proxies, and a server here is none.
  EXPECT_EQ(status(get("http://" + host_ + "/" + token_ + run)), "HTTP/1.1 400");
  for (const std::string method : {"PUT", "DELETE", "OPTIONS", "PATCH"}) {
    const std::string request = method + " /" + token_ + run + " HTTP/1.1\r\n";
    EXPECT_EQ(status(ask(request + "Host: " + host_ + "\r\n")), "HTTP/1.1 405") << method;
  }
  EXPECT_EQ(answered_, 0);
}

TEST_F(ViewServerTest, EndsConnectionsThatSendWhatIsNoRequest) {
  const std::string run = "/" + token_ + "/api/run";
  EXPECT_EQ(status(get(run + "?at=%zz")), "HTTP/1.1 400");
  EXPECT_EQ(status(get(run + "?" + std::string(5000, 'a'))), "HTTP/1.1 400");
  // None of these is answered with what was asked for.
  for (const std::string& bad :
       {get(run, "X: " + std::string(1 << 17, 'x') + "\r\n"), get(run, "Content-Length: 5\r\n"),
        get(run, "Transfer-Encoding: chunked\r\n"), ask(std::string("\0\x16\x03\x01\n", 5)),
        ask("GET\r\n"), ask("GET / HTTP/9.9\r\n")}) {
    EXPECT_NE(status(bad), "HTTP/1.1 200") << bad;
  }
  EXPECT_EQ(answered_, 0);
}

TEST_F(ViewServerTest, IsThereForOthersWhileSomebodySaysNothing) {
  std::vector<std::unique_ptr<RawClient>> silent;
  for (int i = 0; i < 20; ++i) {
    silent.push_back(std::make_unique<RawClient>(port_));
    silent.back()->send("GET /");
  }
  EXPECT_EQ(status(get("/" + token_ + "/api/run")), "HTTP/1.1 200");
  // Those that go on saying nothing are not waited for.
  EXPECT_EQ(silent.back()->rest(), "");
}

}  // namespace
}  // namespace citcat::view
