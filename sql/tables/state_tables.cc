// Tables of one moment: registers, memory.

#include <fmt/format.h>

#include <vector>

#include "events/machine/cpu_state.h"
#include "formats/io/error.h"
#include "sql/tables/row_filters.h"
#include "sql/tables/table.h"
#include "tools/guest/machine_guest.h"

namespace citcat::sql {
namespace {

using enum Column::Type;
using enum Column::Use;

/// The number that a column is to equal. Throws UsageError where the query does not say it.
std::optional<std::uint64_t> argument_of(const Constraints& constraints, int column,
                                         const char* what) {
  const IntegerRange range = integers_of(constraints, column);
  if (range.empty()) return std::nullopt;
  if (range.first != range.last) throw UsageError(what);
  return static_cast<std::uint64_t>(range.first);
}

/// Goes there. False where the run does not go so far, or is not the recorded one up to there.
bool go_to(RowSource& source, std::uint64_t position) {
  ReplayTimeline& timeline = source.timeline();
  const ReplayReport report = timeline.seek({position, 0});
  if (report.divergence) source.note_divergence(*report.divergence);
  return timeline.position() == Position{position, 0};
}

// ---- registers ---------------------------------------------------------------------------------

constexpr int kRegisterPosition = 0, kRegisterName = 1, kRegisterValue = 2, kRegisterKnown = 3;

constexpr Column kRegisterColumns[] = {
    {integer, exact, "position", "the moment before this instruction, which a query must give"},
    {text, none, "name", "eax, cs.base, cr3 ..., in the order of `citcat dump --state`"},
    {integer, none, "value", "its value; NULL if it has more than 64 bits"},
    {integer, none, "known", "0: no dump has it, and nothing has written it so far"},
};

class RegisterCursor final : public Cursor {
 public:
  explicit RegisterCursor(RowSource& source) : source_(source) {}
  void filter(const Constraints& constraints) override {
    names_.clear();
    at_ = 0;
    begun_ = false;
    const auto position =
        argument_of(constraints, kRegisterPosition, "registers: expected where position = N");
    if (!position || !go_to(source_, *position)) return;
    position_ = *position;
    state_ = source_.registers();
    names_ = register_names(state_.model);
  }
  bool next() override {
    if (begun_) ++at_;
    begun_ = true;
    return at_ < names_.size();
  }
  Cell cell(int column) override {
    const std::string& name = names_[at_];
    switch (column) {
      case kRegisterPosition:
        return Cell::of(position_);
      case kRegisterName:
        return Cell::lasting(name);
      case kRegisterValue: {
        const auto value = get_register(state_, name);
        return value ? Cell::of(*value) : Cell::null();
      }
      case kRegisterKnown:
        return Cell::of(is_unknown(state_, name) ? 0 : 1);
      default:
        return Cell::null();
    }
  }
  RowKey key() const override { return {position_, at_}; }

 private:
  RowSource& source_;
  std::uint64_t position_ = 0;
  CpuState state_;
  std::vector<std::string> names_;
  std::size_t at_ = 0;
  bool begun_ = false;
};

class RegistersTable final : public Table {
 public:
  RegistersTable() : Table("registers", "Registers at one moment", kRegisterColumns) {}
  ColumnSet required() const override { return ColumnSet{1} << kRegisterPosition; }
  double rows(const RowSource&) const override { return 64; }
  std::unique_ptr<Cursor> open(RowSource& source) const override {
    return std::make_unique<RegisterCursor>(source);
  }
};

// ---- memory ------------------------------------------------------------------------------------

constexpr int kMemoryAddress = 0, kMemoryValue = 1, kMemoryAt = 2, kMemoryFirst = 3,
              kMemoryLast = 4;

constexpr Column kMemoryColumns[] = {
    {Column::Type::address, none, "address", "linear address of the byte"},
    {integer, none, "value", "the byte; NULL if it is not mapped or not known"},
    {integer, argument, "at", "first argument: the moment before this instruction"},
    {Column::Type::address, argument, "first", "second argument: address of the first byte"},
    {Column::Type::address, argument, "last",
     "third argument: address of the last byte; without it, the first"},
};

class MemoryCursor final : public Cursor {
 public:
  explicit MemoryCursor(RowSource& source) : source_(source) {}
  void filter(const Constraints& constraints) override {
    constexpr const char* kUse = "memory: expected memory(POSITION, FIRST, LAST)";
    left_ = 0;
    begun_ = false;
    const auto at = argument_of(constraints, kMemoryAt, kUse);
    const auto first = argument_of(constraints, kMemoryFirst, kUse);
    const IntegerRange last = integers_of(constraints, kMemoryLast);
    if (!at || !first || last.empty() || !go_to(source_, *at)) return;
    at_ = *at;
    address_ = first_ = *first;
    last_ = last.first == last.last ? static_cast<std::uint64_t>(last.first) : first_;
    if (last_ < first_) {
      throw UsageError(fmt::format("memory: LAST {:#x} lies before FIRST {:#x}", last_, first_));
    }
    left_ = last_ - first_ + 1;
  }
  bool next() override {
    if (begun_ && left_ != 0) {
      ++address_;
      --left_;
    }
    begun_ = true;
    return left_ != 0;
  }
  Cell cell(int column) override {
    switch (column) {
      case kMemoryAddress:
        return Cell::of(address_);
      case kMemoryValue: {
        if (source_.timeline().position() != Position{at_, 0}) go_to(source_, at_);
        const auto byte =
            tools::MachineGuest(source_.timeline().machine()).byte(LinearAddr{address_});
        return byte ? Cell::of(*byte) : Cell::null();
      }
      case kMemoryAt:
        return Cell::of(at_);
      case kMemoryFirst:
        return Cell::of(first_);
      case kMemoryLast:
        return Cell::of(last_);
      default:
        return Cell::null();
    }
  }
  RowKey key() const override { return {at_, address_, first_, last_}; }

 private:
  RowSource& source_;
  std::uint64_t at_ = 0, first_ = 0, last_ = 0, address_ = 0, left_ = 0;
  bool begun_ = false;
};

class MemoryTable final : public Table {
 public:
  MemoryTable()
      : Table("memory", "Bytes of memory at one moment: memory(POSITION, FIRST, LAST)",
              kMemoryColumns) {}
  ColumnSet required() const override {
    return ColumnSet{1} << kMemoryAt | ColumnSet{1} << kMemoryFirst;
  }
  double rows(const RowSource&) const override { return 64; }
  std::unique_ptr<Cursor> open(RowSource& source) const override {
    return std::make_unique<MemoryCursor>(source);
  }
};

const RegistersTable kRegistersInstance;
const MemoryTable kMemoryInstance;

}  // namespace

const Table& kRegistersTable = kRegistersInstance;
const Table& kMemoryTable = kMemoryInstance;

}  // namespace citcat::sql
