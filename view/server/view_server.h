#pragma once
// The local server of `citcat view`: hands out the page and answers its questions, to who knows the
// token in the URL, on the loopback address alone.
//
// Boost.Beast reads and writes HTTP in a thread of its own; questions are answered by the thread
// that calls serve(), one after another, because a replay is one machine.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "view/server/page_source.h"

namespace citcat::view {

struct ServerOptions {
  std::uint16_t port = 0;  ///< 0: a free one
  /// Questions that wait; more are refused.
  std::size_t most_waiting = 64;
  std::size_t most_connections = 64;
  std::chrono::seconds silence{60};  ///< after which a connection is closed
};

/// An answer to a question as HTTP has it.
struct ServedAnswer {
  unsigned status = 200;
  std::string body;
};

class ViewServer {
 public:
  using Parameters = std::map<std::string, std::string>;
  /// Is called by serve() alone.
  using Answer = std::function<ServedAnswer(const std::string& question, const Parameters&)>;

  /// Listens from here on. Throws IoError.
  ViewServer(PageSource page, Answer answer, ServerOptions options = {});
  ~ViewServer();
  ViewServer(const ViewServer&) = delete;
  ViewServer& operator=(const ViewServer&) = delete;

  /// "http://127.0.0.1:PORT/TOKEN/".
  std::string url() const;
  /// Answers until `ended` is true, which is asked several times a second. While nothing is asked,
  /// `idle` is called as long as it returns true: it must be short.
  void serve(const std::function<bool()>& ended, const std::function<bool()>& idle);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace citcat::view
