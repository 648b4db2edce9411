#include "view/server/view_server.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "formats/io/error.h"
#include "view/server/request_target.h"

namespace citcat::view {

namespace {

namespace beast = boost::beast;
namespace http = beast::http;
namespace net = boost::asio;
using tcp = net::ip::tcp;

constexpr std::uint32_t kHeaderLimit = 16 << 10;
/// How long the thread that answers waits before it looks whether it is to end.
constexpr std::chrono::milliseconds kLook{100};

std::string make_token() {
  std::array<unsigned char, 16> random{};
  if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
    throw IoError("getrandom: no random bytes for the token of the URL");
  }
  std::string token;
  for (const unsigned char byte : random) token += fmt::format("{:02x}", byte);
  return token;
}

/// As long for a wrong token as for the right one.
bool same_text(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

const char* content_type(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".svg")) return "image/svg+xml";
  return "text/plain; charset=utf-8";
}

using Request = http::request<http::empty_body>;
using Response = http::response<http::string_body>;

Response make_response(const Request& request, unsigned status, std::string body,
                       const char* type) {
  Response response(static_cast<http::status>(status), request.version());
  response.set(http::field::content_type, type);
  response.set(http::field::cache_control, "no-store");
  response.set("X-Content-Type-Options", "nosniff");
  response.set("X-Frame-Options", "DENY");
  response.set("Referrer-Policy", "no-referrer");
  response.set("Cross-Origin-Resource-Policy", "same-origin");
  response.set("Content-Security-Policy",
               "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
               "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  response.keep_alive(request.keep_alive());
  response.body() = request.method() == http::verb::head ? std::string() : std::move(body);
  response.prepare_payload();
  return response;
}

constexpr const char* kPlain = "text/plain; charset=utf-8";
constexpr const char* kJson = "application/json";

}  // namespace

struct ViewServer::Impl {
  struct Job {
    std::string question;
    Parameters parameters;
    std::function<void(ServedAnswer)> done;
  };
  class Session;

  Impl(PageSource page_source, Answer answerer, ServerOptions server_options)
      : page(std::move(page_source)),
        answer(std::move(answerer)),
        options(server_options),
        token(make_token()) {}

  void open();
  void accept();
  void make_room();
  std::optional<Response> immediate(const Request& request, Job& job) const;
  bool post(Job job);
  void run_job(Job job) const;
  bool host_is_ours(std::string_view host) const;

  PageSource page;
  Answer answer;
  ServerOptions options;
  std::string token;
  std::uint16_t port = 0;
  net::io_context io{1};
  tcp::acceptor acceptor{io};
  std::set<std::shared_ptr<Session>> sessions;  // of the network's thread alone
  std::thread thread;
  std::mutex mutex;
  std::condition_variable comes;
  std::deque<Job> jobs;
};

/// One connection: requests are read and answered one after another.
class ViewServer::Impl::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Impl& server, tcp::socket socket) : server_(server), stream_(std::move(socket)) {}

  void read() {
    waits_since_ = std::chrono::steady_clock::now();
    parser_.emplace();
    parser_->header_limit(kHeaderLimit);
    parser_->body_limit(0);
    stream_.expires_after(server_.options.silence);
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](beast::error_code error, std::size_t) {
                       if (error) return self->close();
                       self->handle();
                     });
  }
  /// For a request; nullopt while one is answered.
  const std::optional<std::chrono::steady_clock::time_point>& waits_since() const {
    return waits_since_;
  }
  void close() {
    beast::error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
    stream_.close();
    server_.sessions.erase(shared_from_this());
  }

 private:
  void handle() {
    waits_since_.reset();
    request_ = parser_->release();
    Job job;
    if (auto response = server_.immediate(request_, job)) return write(std::move(*response));
    // The answer may take longer than a silent client.
    stream_.expires_never();
    job.done = [self = shared_from_this()](ServedAnswer answer) {
      net::post(self->stream_.get_executor(), [self, answer = std::move(answer)]() mutable {
        self->write(make_response(self->request_, answer.status, std::move(answer.body), kJson));
      });
    };
    if (!server_.post(std::move(job))) {
      write(make_response(request_, 503, R"({"error":"too many questions wait"})", kJson));
    }
  }
  void write(Response response) {
    response_ = std::make_shared<Response>(std::move(response));
    stream_.expires_after(server_.options.silence);
    http::async_write(stream_, *response_,
                      [self = shared_from_this()](beast::error_code error, std::size_t) {
                        const bool goes_on = !error && self->response_->keep_alive();
                        self->response_.reset();
                        if (!goes_on) return self->close();
                        self->read();
                      });
  }

  Impl& server_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_{kHeaderLimit + 4096};
  std::optional<http::request_parser<http::empty_body>> parser_;
  Request request_;
  std::optional<std::chrono::steady_clock::time_point> waits_since_;
  std::shared_ptr<Response> response_;
};

void ViewServer::Impl::open() {
  beast::error_code error;
  const tcp::endpoint endpoint(net::ip::address_v4::loopback(), options.port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(net::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(net::socket_base::max_listen_connections, error);
  if (error) {
    throw IoError(fmt::format("127.0.0.1:{}: {}", options.port, error.message()));
  }
  port = acceptor.local_endpoint().port();
}

void ViewServer::Impl::accept() {
  acceptor.async_accept([this](beast::error_code error, tcp::socket socket) {
    if (error == net::error::operation_aborted) return;
    if (!error) make_room();
    if (!error && sessions.size() < options.most_connections) {
      const auto session = std::make_shared<Session>(*this, std::move(socket));
      sessions.insert(session);
      session->read();
    }
    accept();
  });
}

/// Who opens connections and says nothing must not keep others out: the one that has said nothing
/// for longest goes.
void ViewServer::Impl::make_room() {
  if (sessions.size() < options.most_connections) return;
  std::shared_ptr<Session> silent;
  for (const auto& session : sessions) {
    if (!session->waits_since()) continue;
    if (!silent || *session->waits_since() < *silent->waits_since()) silent = session;
  }
  if (silent) silent->close();
}

/// A page of elsewhere whose name somebody lets point here comes with that name.
bool ViewServer::Impl::host_is_ours(std::string_view host) const {
  return host == fmt::format("127.0.0.1:{}", port) || host == fmt::format("localhost:{}", port);
}

/// The response to what is no question; nullopt for a question, which `job` takes.
std::optional<Response> ViewServer::Impl::immediate(const Request& request, Job& job) const {
  const auto plain = [&](unsigned status, const char* text) {
    return make_response(request, status, text, kPlain);
  };
  const auto host = request.find(http::field::host);
  if (host == request.end() || !host_is_ours({host->value().data(), host->value().size()})) {
    return plain(403, "the request names another host\n");
  }
  if (request.method() != http::verb::get && request.method() != http::verb::head) {
    return plain(405, "nothing can be changed here\n");
  }
  const auto target = parse_target({request.target().data(), request.target().size()});
  if (!target) return plain(400, "this is not an address of the page\n");
  const std::string_view path = std::string_view(target->path).substr(1);
  const std::size_t slash = path.find('/');
  if (slash == std::string_view::npos || !same_text(path.substr(0, slash), token)) {
    return plain(403, "the token is missing: use the URL that citcat view printed\n");
  }
  const std::string_view name = path.substr(slash + 1);
  constexpr std::string_view kQuestions = "api/";
  if (name.starts_with(kQuestions)) {
    job.question = name.substr(kQuestions.size());
    job.parameters = target->parameters;
    return std::nullopt;
  }
  const std::string_view file = name.empty() ? std::string_view("index.html") : name;
  const auto content = page(file);
  if (!content) return plain(404, "there is no such file\n");
  return make_response(request, 200, std::string(*content), content_type(file));
}

bool ViewServer::Impl::post(Job job) {
  {
    const std::lock_guard lock(mutex);
    if (jobs.size() >= options.most_waiting) return false;
    jobs.push_back(std::move(job));
  }
  comes.notify_one();
  return true;
}

void ViewServer::Impl::run_job(Job job) const { job.done(answer(job.question, job.parameters)); }

ViewServer::ViewServer(PageSource page, Answer answer, ServerOptions options)
    : impl_(std::make_unique<Impl>(std::move(page), std::move(answer), options)) {
  impl_->open();
  impl_->accept();
  impl_->thread = std::thread([this] { impl_->io.run(); });
}

ViewServer::~ViewServer() {
  impl_->io.stop();
  impl_->thread.join();
}

std::string ViewServer::url() const {
  return fmt::format("http://127.0.0.1:{}/{}/", impl_->port, impl_->token);
}

void ViewServer::serve(const std::function<bool()>& ended, const std::function<bool()>& idle) {
  bool has_more = true;
  while (!ended()) {
    std::optional<Impl::Job> job;
    {
      std::unique_lock lock(impl_->mutex);
      if (!has_more) impl_->comes.wait_for(lock, kLook, [&] { return !impl_->jobs.empty(); });
      if (!impl_->jobs.empty()) {
        job = std::move(impl_->jobs.front());
        impl_->jobs.pop_front();
      }
    }
    if (job) {
      impl_->run_job(std::move(*job));
    } else if (has_more) {
      has_more = idle();
    }
  }
}

}  // namespace citcat::view
