#include "debugger/protocol/request.h"

#include <gtest/gtest.h>

namespace citcat::gdb {
namespace {

using Kind = Request::Kind;

TEST(Request, ReadsWhatGdbSends) {
  EXPECT_EQ(parse_request("?").kind, Kind::why_stopped);
  EXPECT_EQ(parse_request("vCont;s:1;c").kind, Kind::step);
  EXPECT_EQ(parse_request("vCont;c:1").kind, Kind::go_on);
  EXPECT_EQ(parse_request("bs").kind, Kind::step_back);
  EXPECT_EQ(parse_request("bc").kind, Kind::go_back);
  EXPECT_EQ(parse_request("vCont?").kind, Kind::resume_kinds);
  EXPECT_EQ(parse_request("QStartNoAckMode").kind, Kind::no_acknowledging);
  EXPECT_EQ(parse_request("qRcmd,7768657265").text, "where");
  const Request memory = parse_request("mc0101234,40");
  EXPECT_EQ(memory.kind, Kind::read_memory);
  EXPECT_EQ(memory.address, 0xc0101234u);
  EXPECT_EQ(memory.length, 0x40u);
  const Request watch = parse_request("Z2,1000,4");
  EXPECT_EQ(watch.kind, Kind::insert_stop);
  EXPECT_EQ(watch.number, 2u);
  EXPECT_EQ(watch.address, 0x1000u);
  const Request range = parse_request("vCont;r1000,1010:1");
  EXPECT_EQ(range.kind, Kind::step_in_range);
  EXPECT_EQ(range.length, 0x10u);
  const Request xml = parse_request("qXfer:features:read:target.xml:0,fff");
  EXPECT_EQ(xml.kind, Kind::description);
  EXPECT_EQ(xml.text, "target.xml");
  EXPECT_EQ(xml.length, 0xfffu);
}

TEST(Request, KnowsWhichThreadIsMeant) {
  EXPECT_EQ(parse_request("Hg2").thread, 2u);
  EXPECT_EQ(parse_request("Hg2").text, "g");
  EXPECT_EQ(parse_request("Hc-1").thread, 0u);
  EXPECT_EQ(parse_request("Hc-1").text, "c");
  EXPECT_EQ(parse_request("Tb").thread, 11u);
  EXPECT_EQ(parse_request("qThreadExtraInfo,3").thread, 3u);
  const Request step = parse_request("vCont;s:2;c");
  EXPECT_EQ(step.thread, 2u);
  EXPECT_FALSE(step.alone);
  EXPECT_TRUE(parse_request("vCont;s:2").alone);
  EXPECT_FALSE(parse_request("vCont;s:2;c:-1").alone);
  EXPECT_EQ(parse_request("vCont;c:1;s:2").kind, Kind::step);
  EXPECT_EQ(parse_request("vCont;c:1;s:2").thread, 2u);
  EXPECT_FALSE(parse_request("vCont;c").alone);
  for (const char* const data : {"H", "Hgx", "T", "Tx", "vCont;s:x", "vCont;", "qThreadExtraInfo"})
    EXPECT_EQ(parse_request(data).kind, Kind::malformed) << data;
}

TEST(Request, ReadsWhatIsToBeWritten) {
  EXPECT_EQ(parse_request("M10,2:a1b2").data, (std::vector<std::uint8_t>{0xa1, 0xb2}));
  EXPECT_EQ(parse_request("X10,2::}").data, (std::vector<std::uint8_t>{':', '}'}));
  EXPECT_EQ(parse_request("X10,0:").kind, Kind::write_memory);
  EXPECT_EQ(parse_request("P8=00100000").number, 8u);
  EXPECT_EQ(parse_request("P8=00100000").data.size(), 4u);
}

TEST(Request, CallsMalformedWhatIsNotAsItHasToBe) {
  for (const char* const data : {"m",
                                 "m10",
                                 "m10,",
                                 "mxyz,4",
                                 "m10000000000000000,4",
                                 "M10,2:a1",
                                 "M10,2:zz",
                                 "X10,3:ab",
                                 "Z9,10,1",
                                 "Z0,10",
                                 "p",
                                 "pzz",
                                 "P1",
                                 "vCont;",
                                 "vCont;t",
                                 "vCont;r10",
                                 "vCont;r20,10",
                                 "qRcmd,7",
                                 "qXfer:features:read:target.xml:",
                                 "G1",
                                 "G0g"}) {
    EXPECT_EQ(parse_request(data).kind, Kind::malformed) << data;
  }
}

TEST(Request, DoesNotKnowWhatItNeedNotKnow) {
  for (const char* const data : {"", "vMustReplyEmpty", "qOffsets", "QNonStop:1", "bx", "J",
                                 "vFile:setfs:0", "qXfer:threads:read::0,1000", "!"}) {
    EXPECT_EQ(parse_request(data).kind, Kind::unknown) << data;
  }
}

}  // namespace
}  // namespace citcat::gdb
