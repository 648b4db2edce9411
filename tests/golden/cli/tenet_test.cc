// The trace for Tenet.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "golden/citcat_test.h"
#include "golden/process.h"
#include "golden/samples.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class TenetExport : public CitcatTest {};

TEST_F(TenetExport, HasTheRegistersThatChangeAndTheBytes) {
  import_sample("pc.citcat");
  good({"replay", "pc.citcat", "-o", "pc.tenet", "--from", "41", "--to", "44"});
  // `citcat cat` disassembles them: stosw, add ax, 0x50 and loop.
  const std::string trace = read_file(file("pc.tenet"));
  EXPECT_THAT(trace, StartsWith("eip=0x159eb\neax="));
  EXPECT_THAT(trace, HasSubstr(",edi=0xec96,eip=0x159ec,mw=0x24524:0000\n"));
  EXPECT_THAT(trace, HasSubstr("\neax=0x50,eip=0x159ef\necx=0x65,eip=0x159eb\n"));
}

/// The processor changes these registers after it has read what the instruction says.
TEST_F(TenetExport, HasTheStackThatSysexitAndSysenterLoad) {
  good({"import", kLinuxStart, "--internal", kLinuxStartValues, "-o", "linux.citcat"});
  struct {
    const char *from, *to, *line;
  } const cases[] = {{"293", "296", "\nesp=0xbfc8cef4,eip=0xb7fd4559\n"},
                     {"293", "295", "\nesp=0xbfc8cef4,eip=0xb7fd4559\n"},
                     {"332", "335", "\nesp=0xff404000,eip=0xc491a010\n"},
                     {"332", "334", "\nesp=0xff404000,eip=0xc491a010\n"}};
  for (const auto& c : cases) {
    EXPECT_THAT(good({"cat", "linux.citcat", "--format", "tenet", "--from", c.from, "--to", c.to}),
                HasSubstr(c.line));
  }
}

/// INT 1Ch of the BIOS.
TEST_F(TenetExport, HasOneLineForASoftwareInterrupt) {
  import_sample("pc.citcat");
  EXPECT_THAT(good({"cat", "pc.citcat", "--format", "tenet", "--from", "552", "--to", "555"}),
              HasSubstr(",eip=0xffee3\nesp=0xffcc,eip=0xfff53\nesp=0xffd2,eip=0xffee5,"));
}

}  // namespace
}  // namespace citcat::testing
