// Tables that a processor may walk to again, where the replay has not been.

#include "replay/machine/table_search.h"

#include <gtest/gtest.h>

#include "replay/machine/machine.h"
#include "unit/replay/machine/long_mode_guest.h"

namespace citcat {
namespace {

class TableSearch : public LongModeGuest {
 protected:
  bool is_named(std::uint32_t address) {
    Replayer replayer(recording_, nullptr, {});
    return names_table(replayer.machine(), address >> 12);
  }
};

TEST_F(TableSearch, FindsTablesOfEveryLevel) {
  put_quad(kTables + 0x2010, 0x9003);
  EXPECT_TRUE(is_named(kTables + 0x1000));
  EXPECT_TRUE(is_named(kTables + 0x2000));
  EXPECT_TRUE(is_named(0x9000));
  EXPECT_FALSE(is_named(0xa000));
}

TEST_F(TableSearch, APageIsNoTable) {
  put_quad(kTables + 0x2010, 0x9003);
  put_quad(0x9000, 0xa003);
  put_quad(kTables + 0x2018, 0xb083);  // of 2 MiB
  EXPECT_FALSE(is_named(0xa000));
  EXPECT_FALSE(is_named(0xb000));
}

TEST_F(TableSearch, WithoutLongModeThereAreNone) {
  set_register(recording_.initial, "efer", 0);
  set_register(recording_.initial, "cr0", 0x11);
  EXPECT_FALSE(is_named(kTables + 0x1000));
}

}  // namespace
}  // namespace citcat
