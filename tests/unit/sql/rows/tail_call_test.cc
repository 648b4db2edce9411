// The instructions of a call whose procedure does not return, but jumps to another one that does.

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sql/rows/row_source.h"
#include "unit/replay/machine/paged_guest.h"
#include "unit/temporary_folder.h"

namespace citcat::sql {
namespace {

constexpr std::uint32_t kFirst = 0x13000, kSecond = 0x13100, kThird = 0x13200;

class TailCalls : public test::TemporaryFolder {
 protected:
  TailCalls() {
    const auto to = [&](int opcode, std::uint32_t from, std::uint32_t target) {
      guest_.put(from, {opcode});
      guest_.put_word(from + 1, target - from - 5);
    };
    // Both others are called once, so that they are known where they have no names.
    std::uint32_t at = test::PagedGuest::kMain;
    for (const std::uint32_t procedure : {kThird, kSecond, kFirst}) {
      to(0xe8, at, procedure);
      at += 5;
    }
    guest_.put(at, {0x90, 0x90});
    guest_.put(kFirst, {0x90, 0x90});
    to(0xe9, kFirst + 2, kSecond);
    guest_.put(kSecond, {0x90});
    to(0xe9, kSecond + 1, kThird);
    guest_.put(kThird, {0x90, 0x90, 0x90, 0xc3});
  }

  /// Instructions of each call, by the address of its procedure.
  std::map<std::uint64_t, std::uint64_t> calls(const Symbols& symbols) {
    guest_.recording.instructions = kLength;
    RecordingFileWriter(path("r.citcat")).finish(guest_.recording);
    const RecordingFile file = RecordingFile::open(path("r.citcat"));
    SourceOptions options;
    options.path = path("r.citcat");
    options.check = false;
    RowSource source(file, symbols, std::move(options));
    source.begin_statement();
    RowNeeds needs;
    needs.calls = true;
    source.need(needs);
    std::map<std::uint64_t, std::uint64_t> all;
    const auto whole = source.whole();
    for (const ProcedureCallRow& row : whole->rows.calls) {
      if (!row.is_call) continue;
      EXPECT_TRUE(row.ended) << row.at;
      all[row.at] = row.instructions;
    }
    return all;
  }

  static constexpr std::uint64_t kLength = 3 + 4 + (2 + 4) + (3 + 2 + 4) + 1;
  test::PagedGuest guest_;
};

TEST_F(TailCalls, OfCodeWithoutNamesGoOnAsTheSameCall) {
  EXPECT_EQ(calls(Symbols()), (std::map<std::uint64_t, std::uint64_t>{{1, 4}, {6, 6}, {13, 9}}));
}

TEST_F(TailCalls, OfNamedProceduresAreCallsWithinThoseThatJump) {
  SymbolModule module{"program", "", {}};
  for (const auto& [name, address] :
       {std::pair("first", kFirst), {"second", kSecond}, {"third", kThird}}) {
    module.symbols.push_back({name, LinearAddr{address}, 0x20});
  }
  EXPECT_EQ(calls(Symbols({module})), (std::map<std::uint64_t, std::uint64_t>{
                                          {1, 4}, {6, 6}, {8, 4}, {13, 9}, {16, 6}, {18, 4}}));
}

}  // namespace
}  // namespace citcat::sql
