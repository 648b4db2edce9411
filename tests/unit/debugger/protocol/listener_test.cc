// Who may connect to a debugger that listens.

#include "debugger/protocol/listener.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "formats/io/error.h"
#include "unit/temporary_folder.h"

namespace citcat::gdb {
namespace {

constexpr std::uint32_t kNobody = 65534;

class ListenerTest : public test::TemporaryFolder {
 protected:
  /// Connects to the address, as this user or as nobody, and sends `text`; a process that lives
  /// until end_client().
  void client(const std::string& address, const std::string& text, bool as_nobody = false) {
    process_ = fork();
    ASSERT_GE(process_, 0);
    if (process_ != 0) return;
    if (as_nobody && setuid(kNobody) != 0) _exit(1);
    const int line = connected(address);
    if (line < 0 || ::write(line, text.data(), text.size()) < 0) _exit(2);
    pause();
    _exit(0);
  }
  static int connected(const std::string& address) {
    const std::size_t colon = address.rfind(':');
    if (colon == std::string::npos) {
      sockaddr_un there{};
      there.sun_family = AF_UNIX;
      std::strncpy(there.sun_path, address.c_str(), sizeof there.sun_path - 1);
      const int line = socket(AF_UNIX, SOCK_STREAM, 0);
      const bool is_there = connect(line, reinterpret_cast<sockaddr*>(&there), sizeof there) == 0;
      return is_there ? line : -1;
    }
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
    there.sin_addr.s_addr = inet_addr(address.substr(0, colon).c_str());
    const int line = socket(AF_INET, SOCK_STREAM, 0);
    const bool is_there = connect(line, reinterpret_cast<sockaddr*>(&there), sizeof there) == 0;
    return is_there ? line : -1;
  }
  /// Why the client that comes is turned away.
  static std::string verdict(Listener& listener) {
    pollfd wait{listener.descriptor(), POLLIN, 0};
    poll(&wait, 1, 10'000);
    const int line = listener.accept();
    if (line < 0) return "nobody came";
    const std::string why = why_turned_away(line, 1000);
    close(line);
    return why;
  }
  void end_client() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }

  pid_t process_ = -1;
};

TEST_F(ListenerTest, TakesAGdbOfThisUser) {
  Listener port(std::uint16_t{0});
  Listener local(path("socket"));
  for (Listener* const listener : {&port, &local}) {
    client(listener->address(), "+$qSupported#37");
    EXPECT_EQ(verdict(*listener), "") << listener->address();
    end_client();
  }
}

TEST_F(ListenerTest, TurnsAwayWhatIsNoGdb) {
  Listener listener(std::uint16_t{0});
  for (const char* const text : {"POST / HTTP/1.1\r\n", "GET /$g#67", "\x16\x03\x01", "\x1b[2J"}) {
    client(listener.address(), text);
    EXPECT_NE(verdict(listener).find("expected a packet"), std::string::npos) << text;
    end_client();
  }
  client(listener.address(), "");
  EXPECT_EQ(verdict(listener), "it has said nothing for 1 s");
  end_client();
}

TEST_F(ListenerTest, TurnsAwayOtherUsers) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  Listener port(std::uint16_t{0});
  client(port.address(), "+$qSupported#37", true);
  EXPECT_EQ(verdict(port), "it is of user 65534");
  end_client();
  Listener local(path("socket"));
  // Whoever may enter all folders on the way can still not open it.
  ASSERT_EQ(chmod(path("").c_str(), 0755), 0);
  client(local.address(), "+$qSupported#37", true);
  int status = 0;
  ASSERT_EQ(waitpid(process_, &status, 0), process_);
  EXPECT_EQ(WEXITSTATUS(status), 2);
}

TEST_F(ListenerTest, TakesNobodysNameForASocket) {
  Listener listener(path("socket"));
  EXPECT_THROW(Listener(path("socket")), UsageError);
  EXPECT_THROW(Listener(std::string(200, 'a')), UsageError);
  EXPECT_THROW(Listener(path("no/such/folder")), IoError);
}

}  // namespace
}  // namespace citcat::gdb
