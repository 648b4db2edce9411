#include "debugger/protocol/packet_reader.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace citcat::gdb {
namespace {

std::vector<Incoming> read_all(const std::vector<std::string>& pieces) {
  PacketReader reader;
  std::vector<Incoming> all;
  for (const std::string& piece : pieces) {
    reader.add(piece);
    for (Incoming incoming; reader.take(incoming);) all.push_back(incoming);
  }
  return all;
}

TEST(PacketReader, TakesAPacketWhoseSumIsRight) {
  // The manual's own example of a sum: "$OK#9a".
  const auto all = read_all({"$OK#9a"});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].kind, Incoming::Kind::packet);
  EXPECT_EQ(all[0].data, "OK");
}

TEST(PacketReader, RefusesAPacketWhoseSumIsWrongOrIsNoNumber) {
  for (const char* const packet : {"$OK#9b", "$OK#xx", "$g#", "$a}#fe"}) {
    const auto all = read_all({packet, "00"});
    ASSERT_FALSE(all.empty()) << packet;
    EXPECT_EQ(all[0].kind, Incoming::Kind::damaged) << packet;
  }
}

TEST(PacketReader, KnowsCtrlCBetweenPacketsOnly) {
  const auto all = read_all({"\x03", packet_of("X0,1:\x03")});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].kind, Incoming::Kind::interrupt);
  EXPECT_EQ(all[1].kind, Incoming::Kind::packet);
  EXPECT_EQ(all[1].data, "X0,1:\x03");
}

TEST(PacketReader, ReadsAnyDataHoweverItComesInPieces) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::string data;
    for (auto n = random() % 300; n != 0; --n) data += static_cast<char>(random() % 256);
    const std::string packet = packet_of(data);
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < packet.size();) {
      const std::size_t n = std::size_t{1} + random() % 7;
      pieces.push_back(packet.substr(at, n));
      at += n;
    }
    const auto all = read_all(pieces);
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].kind, Incoming::Kind::packet);
    EXPECT_EQ(all[0].data, data);
  }
}

TEST(PacketReader, UndoesRepetitions) {
  // The manual's example: "0* " is "0000".
  const std::string body = "0* ";
  const std::uint8_t sum = packet_sum(body);
  const auto all = read_all({"$" + body + "#" + hex_of(std::vector<std::uint8_t>{sum})});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].data, "0000");
}

TEST(PacketReader, KeepsNoMoreThanTheLongestPacketHas) {
  const auto all = read_all({"$" + std::string(3 * kMaxPacketBytes, 'a') + "#00", packet_of("g")});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].kind, Incoming::Kind::damaged);
  EXPECT_EQ(all[1].data, "g");
}

}  // namespace
}  // namespace citcat::gdb
