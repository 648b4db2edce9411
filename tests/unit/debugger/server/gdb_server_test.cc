// What gdb is answered, packet by packet, on the sample of an 8088.

#include "debugger/server/gdb_server.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "capture/import/import.h"
#include "debugger/protocol/packet_text.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

namespace fs = std::filesystem;

class GdbServerTest : public test::TemporaryFolder {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);
    const fs::path folder = fs::path(CITCAT_SOURCE_DIR) / "samples/ibm5150";
    ImportOptions options;
    options.capture.cpu = CpuModel::i8088;
    options.initial_state_path = folder / "state.json";
    options.start = parse_where("interrupt:0");
    import_capture({folder / "area5150.sr"}, options, path("r.citcat"));
  }

  /// Sends each packet and `behind` it, waits for its answer, and returns all that came back, texts
  /// of commands among it. Goes away then.
  std::vector<std::string> answers(const std::vector<std::string>& packets,
                                   const std::string& behind = "") {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    std::thread server([&] {
      const RecordingFile file = RecordingFile::open(path("r.citcat"));
      DebugTarget target(file, {}, true);
      Monitor monitor(target, [](const BusTransaction&) { return std::string("transaction"); });
      gdb::Connection connection(ends[1], ends[1]);
      MachineTarget machine({&target}, {});
      GdbServer(machine, {&monitor}, connection, [this](const std::string& reason) {
        told_.push_back(reason);
      }).serve([&] {
        monitor.seek(at_);
        return std::size_t{0};
      });
      ::close(ends[1]);
    });
    std::vector<std::string> all;
    gdb::PacketReader reader;
    for (const std::string& packet : packets) {
      const std::string sent = gdb::packet_of(packet) + behind;
      EXPECT_EQ(::write(ends[0], sent.data(), sent.size()), static_cast<ssize_t>(sent.size()));
      while (!take_answer(ends[0], reader, all)) {
      }
    }
    ::close(ends[0]);
    server.join();
    return all;
  }
  /// Takes what has come, or waits for more; true where it was the answer.
  static bool take_answer(int line, gdb::PacketReader& reader, std::vector<std::string>& all) {
    for (gdb::Incoming incoming; reader.take(incoming);) {
      if (incoming.kind != gdb::Incoming::Kind::packet) continue;
      all.push_back(incoming.data);
      const bool is_text =
          incoming.data.size() > 1 && incoming.data[0] == 'O' && incoming.data != "OK";
      if (!is_text) return true;
    }
    char bytes[4096];
    const ssize_t n = ::read(line, bytes, sizeof bytes);
    if (n <= 0) return true;
    reader.add({bytes, static_cast<std::size_t>(n)});
    return false;
  }
  std::string answer(const std::string& packet) { return answers({packet}).back(); }

  std::string at_ = "100";
  std::vector<std::string> told_;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(GdbServerTest, OffersWhatItCan) {
  const std::string features = answer("qSupported:swbreak+;hwbreak+");
  for (const char* const feature : {"QStartNoAckMode+", "qXfer:features:read+", "ReverseStep+",
                                    "ReverseContinue+", "swbreak+"}) {
    EXPECT_TRUE(contains(features, feature)) << feature;
  }
  EXPECT_EQ(answer("vMustReplyEmpty"), "");
  EXPECT_EQ(answer("vCont?"), "vCont;c;C;s;S;r");
}

TEST_F(GdbServerTest, DescribesCodeOf16BitsAndNoRegistersThatThe8088DoesNotHave) {
  const std::string xml = answer("qXfer:features:read:target.xml:0,1fff");
  EXPECT_TRUE(contains(xml, "<architecture>i8086</architecture>"));
  EXPECT_TRUE(contains(xml, "org.gnu.gdb.i386.core"));
  EXPECT_FALSE(contains(xml, "xmm0"));
}

TEST_F(GdbServerTest, TheProgramCounterIsALinearAddress) {
  // At instruction 100 the sample is at 1589:015F, as `citcat cat` shows it, too.
  EXPECT_EQ(answer("p8"), "ef590100");
  EXPECT_EQ(answer("m159ef,2"), "e2fa");
}

TEST_F(GdbServerTest, WhatNobodyKnowsIsNotZero) {
  EXPECT_EQ(answer("p3"), "xxxxxxxx");  // BX, until the program loads it
  EXPECT_EQ(answer("m7fff0,4"), "E0e");
}

TEST_F(GdbServerTest, GoesBothWaysAndSaysWhereTheRunEnds) {
  const auto all = answers({"vCont;s:1", "bs", "p8", "bc", "bs", "vCont;c:1"});
  ASSERT_EQ(all.size(), 6u);
  EXPECT_TRUE(contains(all[0], "08:eb590100;"));
  EXPECT_TRUE(contains(all[1], "08:ef590100;"));
  EXPECT_EQ(all[2], "ef590100");
  EXPECT_TRUE(contains(all[3], "replaylog:begin;"));
  EXPECT_TRUE(contains(all[4], "replaylog:begin;"));
  EXPECT_TRUE(contains(all[5], "replaylog:end;"));
}

TEST_F(GdbServerTest, MeetsBreakpointsAndWatchpoints) {
  const auto all = answers({"qSupported:swbreak+;hwbreak+", "Z0,159eb,1", "vCont;c:1", "z0,159eb,1",
                            "Z2,24538,2", "vCont;c:1", "bc", "z2,24538,2", "bc"});
  ASSERT_EQ(all.size(), 9u);
  EXPECT_TRUE(contains(all[2], "swbreak:;08:eb590100;"));
  EXPECT_TRUE(contains(all[5], "watch:24538;08:ec590100;"));
  // Before the store.
  EXPECT_TRUE(contains(all[6], "watch:24538;08:eb590100;"));
  EXPECT_TRUE(contains(all[8], "replaylog:begin;"));
}

TEST_F(GdbServerTest, IsInterruptedByCtrlC) {
  const auto all = answers({"vCont;c:1"}, "\x03");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].substr(0, 3), "T02");
}

TEST_F(GdbServerTest, RefusesToWriteAndSaysWhy) {
  EXPECT_TRUE(contains(answer("P0=05000000"), "monitor fork"));
  EXPECT_EQ(answer("M159ef,1:90").substr(0, 2), "E.");
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_TRUE(contains(told_[0], "monitor fork"));
}

TEST_F(GdbServerTest, ABranchIsWrittenToAndThrownAway) {
  const std::string fork = "qRcmd," + gdb::hex_of(std::string_view("fork"));
  const std::string end = "qRcmd," + gdb::hex_of(std::string_view("fork end"));
  const auto all = answers(
      {fork, "P0=05000000", "M159ef,2:9090", "p0", "m159ef,2", "vCont;s:1", end, "p8", "m159ef,2"});
  ASSERT_EQ(all.size(), 11u);  // two of them with text
  EXPECT_EQ(all[2], "OK");
  EXPECT_EQ(all[3], "OK");
  EXPECT_EQ(all[4], "05000000");
  EXPECT_EQ(all[5], "9090");
  EXPECT_TRUE(contains(all[6], "08:f0590100;"));  // NOP in place of LOOP
  EXPECT_EQ(all[9], "ef590100");
  EXPECT_EQ(all[10], "e2fa");
}

TEST_F(GdbServerTest, AnswersCommands) {
  const auto run = [&](const std::string& command) {
    std::string text;
    for (const std::string& data : answers({"qRcmd," + gdb::hex_of(std::string_view(command))})) {
      if (data == "OK") break;
      const auto bytes = gdb::bytes_of(data.substr(1));
      text.append(bytes->begin(), bytes->end());
    }
    return text;
  };
  EXPECT_TRUE(contains(run("where"), "1589:0000015f, linear 000159ef"));
  EXPECT_TRUE(contains(run("where"), "real mode, 16-bit code"));
  EXPECT_TRUE(contains(run("help"), "monitor last-write"));
  EXPECT_TRUE(contains(run("frobnicate"), "there is no monitor command 'frobnicate'"));
  EXPECT_TRUE(contains(run("seek nowhere"), "expected a position"));
  EXPECT_TRUE(contains(run("seek 9999999"), "the run ends before"));
  EXPECT_TRUE(contains(run("seek divergence"), "agrees with its evidence up to its end"));
  EXPECT_TRUE(contains(run("last-write 0x159ef"), "nobody has stored"));
  at_ = "101";
  EXPECT_TRUE(contains(run("events 3"), "interrupt 08h"));
  EXPECT_TRUE(contains(run("bus 3"), "bus     transaction"));
  EXPECT_TRUE(contains(run("bus 3"), "replay  fetch  000159ef 2 bytes"));
}

/// The recording begins with the acknowledge of an interrupt; its handler returns at 29, by its
/// 30th instruction.
TEST_F(GdbServerTest, KnowsTheInterruptThatTheRecordingBeginsWith) {
  const auto run = [&](const std::string& at, const std::string& command) {
    at_ = at;
    const std::string sent = "qRcmd," + gdb::hex_of(std::string_view(command));
    const auto bytes = gdb::bytes_of(answers({sent}).front().substr(1));
    return std::string(bytes->begin(), bytes->end());
  };
  for (const char* const at : {"1", "29"}) {
    const std::string where = run(at, "where");
    EXPECT_TRUE(contains(where, "in interrupt 08h, entered at instruction 0")) << at << where;
  }
  EXPECT_TRUE(contains(run("0", "where"), "in no interrupt or exception"));
  EXPECT_TRUE(contains(run("30", "where"), "in no interrupt or exception"));
  EXPECT_TRUE(contains(run("63", "where"), "in interrupt 08h, entered at instruction 62"));
  EXPECT_TRUE(contains(run("5", "events 50"), "0  interrupt 08h"));
}

TEST_F(GdbServerTest, ComesThroughWhateverItIsSent) {
  const auto all = answers({"", "zzz", "m", "mffffffff,ffffffff", "pffff", "qRcmd,6",
                            "Z2,0,ffffffff", "vCont;x", "X0,5:ab", "p8"});
  EXPECT_EQ(all.back(), "ef590100");
}

}  // namespace
}  // namespace citcat
