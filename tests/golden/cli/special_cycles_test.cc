// Halts and shutdowns on the bus: each is compared, and an NMI ends a shutdown.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "golden/citcat_test.h"
#include "golden/flat_machine.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;

class SpecialCycles : public CitcatTest {
 protected:
  /// Flat 32-bit code of a 386 at 5000h, whose table of interrupts, at 7000h, ends with that of the
  /// NMI; each of the rows is one of the bus.
  ProcessResult verdict(const std::string& rows,
                        const nlohmann::json& registers = {{"idtr.limit", 23}}) const {
    nlohmann::json all = {{"idtr.base", 28672}, {"gdtr.base", 16384}, {"gdtr.limit", 31}};
    all.update(registers);
    write_file(file("state.json"), flat_machine({{"ram_bytes", 65536}}, all));
    write_file(file("c.csv"),
               "#citcat-capture 1 cpu=386 cache=none line=0 bus=4 mask=ffffffff\n"
               "icount,rep,clk,type,addr,size,flags,burst,data\n" +
                   rows);
    good({"import", "c.csv", "--initial-state", "state.json", "-o", "r.citcat", "-q"});
    return run({"verify", "r.citcat"});
  }
};

TEST_F(SpecialCycles, AfterTheLastHaltOrShutdownAreTold) {
  const std::string code = "0,0,0,CODE_RD,5000,4,-,0,90f40f0b\n";  // nop; hlt; ud2
  const std::string halts = code + "1,0,0,HALT,0,0,-,0,\n";
  EXPECT_EQ(verdict(halts).exit_code, 0);
  const std::string shuts_down = "0,0,0,CODE_RD,5000,4,-,0,0f0b9090\n0,0,0,SHUTDOWN,0,0,-,0,\n";
  EXPECT_EQ(verdict(shuts_down).exit_code, 0);
  for (const std::string& rows :
       {halts + "1,0,0,HALT,0,0,-,0,\n", shuts_down + "0,0,0,SHUTDOWN,0,0,-,0,\n",
        code + "2,0,0,HALT,0,0,-,0,\n2,0,0,SHUTDOWN,0,0,-,0,\n"}) {
    const ProcessResult found = verdict(rows);
    EXPECT_EQ(found.exit_code, 1) << rows;
    EXPECT_THAT(found.out, HasSubstr("special cycle")) << rows;
  }
}

/// UD2 has no gate, nor have #GP and #DF: the processor shuts down, and the NMI has one (Intel SDM
/// vol. 3, 6.15, interrupt 8).
TEST_F(SpecialCycles, AnNmiEndsAShutdown) {
  const ProcessResult found = verdict(
      "0,0,0,CODE_RD,5000,4,-,0,0f0b9090\n0,0,0,SHUTDOWN,0,0,-,0,\n0,0,0,NMI,0,0,-,0,\n"
      "0,0,0,MEM_RD,7010,4,-,0,00600800\n0,0,0,MEM_RD,7014,4,-,0,008e0000\n"
      "0,0,0,MEM_RD,4008,4,-,0,ffff0000\n0,0,0,MEM_RD,400c,4,-,0,009bcf00\n"
      "0,0,0,MEM_WR,7ffc,4,-,0,02000000\n0,0,0,MEM_WR,7ff8,4,-,0,08000000\n"
      "0,0,0,MEM_WR,7ff4,4,-,0,00500000\n0,0,0,CODE_RD,6000,4,-,0,90909090\n"
      "3,0,0,CODE_RD,6004,4,-,0,f4909090\n4,0,0,HALT,0,0,-,0,\n");
  EXPECT_EQ(found.exit_code, 0) << found.out;
  EXPECT_THAT(found.out, HasSubstr("special cycles     2 of 2 equal"));
}

/// PUSH AX with SP = 1 in real mode: nothing can be delivered (80386 Programmer's Reference, PUSH).
TEST_F(SpecialCycles, APushWithoutRoomInRealModeShutsDown) {
  const nlohmann::json real = {
      {"idtr.limit", 1023}, {"cr0", 16},        {"esp", 1},          {"eip", 0},
      {"cs", 1280},         {"cs.base", 20480}, {"cs.limit", 65535}, {"cs.attributes", "0x93"},
      {"ss", 256},          {"ss.base", 4096},  {"ss.limit", 65535}, {"ss.attributes", "0x93"}};
  const ProcessResult found =
      verdict("0,0,0,CODE_RD,5000,4,-,0,50909090\n0,0,0,SHUTDOWN,0,0,-,0,\n", real);
  EXPECT_EQ(found.exit_code, 0) << found.out;
}

}  // namespace
}  // namespace citcat::testing
