// Tables of what the recording itself holds: bus, symbols. No replay is needed for them.

#include <fmt/format.h>

#include "events/bus_transaction.h"
#include "events/names/demangle.h"
#include "sql/tables/row_filters.h"
#include "sql/tables/table.h"

namespace citcat::sql {
namespace {

using enum Column::Type;
using enum Column::Use;

// ---- bus ---------------------------------------------------------------------------------------

enum BusColumn : int {
  kBusTransaction,
  kBusKind,
  kBusAddress,
  kBusSize,
  kBusData,
  kBusPosition,
  kBusClock,
  kBusLine,
  kBusWriteBack,
  kBusUncacheable,
};

constexpr Column kBusColumns[] = {
    {integer, exact, "number", "number of the transaction in the capture, from 0"},
    {text, none, "kind",
     "code_read, data_read, data_write, io_read, io_write, interrupt_acknowledge, halt, shutdown, "
     "flush, reset, nmi, smi or instruction_start"},
    {Column::Type::address, none, "address", "physical address, or the port"},
    {integer, none, "size", "bytes"},
    {text, none, "data",
     "hexadecimal, in the order of addresses: what was written, or the vector of an "
     "interrupt_acknowledge; NULL for reads"},
    {integer, none, "position", "instructions completed before it, if the monitor counted them"},
    {integer, none, "clock", "bus clock or sample, if the capture has it"},
    {integer, none, "line", "1: part of a line"},
    {integer, none, "write_back", "1: write-back of a dirty line"},
    {integer, none, "uncacheable", "1: the address is not cached"},
};

class BusCursor final : public Cursor {
 public:
  explicit BusCursor(RowSource& source) : source_(source) {}
  void filter(const Constraints& constraints) override {
    numbers_ = integers_of(constraints, kBusTransaction);
    reader_ = numbers_.empty() ? nullptr : source_.file().evidence();
    read_ = 0;
  }
  bool next() override {
    while (reader_ != nullptr && reader_->next(transaction_)) {
      ++read_;
      const auto number = static_cast<std::int64_t>(transaction_.index);
      if (number > numbers_.last) break;
      if (number >= numbers_.first) return true;
    }
    reader_.reset();
    return false;
  }
  Cell cell(int column) override {
    const BusTransaction& t = transaction_;
    switch (column) {
      case kBusTransaction:
        return Cell::of(t.index);
      case kBusKind:
        return Cell::lasting(bus_op_name(t.op));
      case kBusAddress:
        return Cell::of(t.address.value);
      case kBusSize:
        return Cell::of(t.size);
      case kBusData:
        return data();
      case kBusPosition:
        return t.has(kPositionKnown) ? Cell::of(t.position.instruction) : Cell::null();
      case kBusClock:
        return t.has(kClockKnown) ? Cell::of(t.clock) : Cell::null();
      case kBusLine:
        return Cell::of(t.has(kLine) ? 1 : 0);
      case kBusWriteBack:
        return Cell::of(t.has(kWriteBack) ? 1 : 0);
      case kBusUncacheable:
        return Cell::of(t.has(kUncacheable) ? 1 : 0);
      default:
        return Cell::null();
    }
  }
  RowKey key() const override { return {read_}; }

 private:
  Cell data() {
    const BusOp op = transaction_.op;
    const bool is_read = op == BusOp::code_read || op == BusOp::data_read || op == BusOp::io_read;
    if (is_read) return Cell::null();
    scratch_.clear();
    for (const std::uint8_t byte : transaction_.bytes()) scratch_ += fmt::format("{:02x}", byte);
    return Cell::passing(scratch_);
  }

  RowSource& source_;
  IntegerRange numbers_;
  std::unique_ptr<EvidenceReader> reader_;
  std::uint64_t read_ = 0;  ///< transactions
  BusTransaction transaction_;
  std::string scratch_;
};

class BusTable final : public Table {
 public:
  BusTable() : Table("bus", "Transactions of the bus, as they were recorded", kBusColumns) {}
  int ordered_by() const override { return kBusTransaction; }
  double rows(const RowSource& source) const override {
    return static_cast<double>(source.file().recording().totals.transactions) + 1;
  }
  std::unique_ptr<Cursor> open(RowSource& source) const override {
    return std::make_unique<BusCursor>(source);
  }
};

// ---- symbols -----------------------------------------------------------------------------------

constexpr int kSymbolName = 0, kSymbolModule = 1, kSymbolAddress = 2, kSymbolSize = 3,
              kSymbolKind = 4, kSymbolProcess = 5;

constexpr Column kSymbolColumns[] = {
    {text, none, "name", "demangled"},
    {text, none, "module", "program, library, kernel or kernel module"},
    {Column::Type::address, none, "address", "linear address of its first byte"},
    {integer, none, "size", "bytes; NULL if the file does not say"},
    {text, none, "kind", "code or data"},
    {text, none, "process", "the only process that has the module; NULL: every process has it"},
};

class SymbolCursor final : public Cursor {
 public:
  explicit SymbolCursor(RowSource& source) : modules_(source.symbols().modules()) {}
  void filter(const Constraints&) override {
    module_ = 0;
    at_ = kBefore;
  }
  bool next() override {
    ++at_;
    while (module_ < modules_.size() && at_ >= modules_[module_].symbols.size()) {
      ++module_;
      at_ = 0;
    }
    return module_ < modules_.size();
  }
  Cell cell(int column) override {
    const SymbolModule& module = modules_[module_];
    const Symbol& symbol = module.symbols[at_];
    switch (column) {
      case kSymbolName:
        return Cell::passing(scratch_ = demangled(symbol.name));
      case kSymbolModule:
        return Cell::lasting(module.name);
      case kSymbolAddress:
        return Cell::of(symbol.address.value);
      case kSymbolSize:
        return symbol.size != 0 ? Cell::of(symbol.size) : Cell::null();
      case kSymbolKind:
        return Cell::lasting(symbol.kind == SymbolKind::code ? "code" : "data");
      case kSymbolProcess:
        return module.process.empty() ? Cell::null() : Cell::lasting(module.process);
      default:
        return Cell::null();
    }
  }
  RowKey key() const override { return {module_, at_}; }

 private:
  static constexpr std::size_t kBefore = ~std::size_t{0};
  const std::vector<SymbolModule>& modules_;
  std::size_t module_ = 0, at_ = kBefore;
  std::string scratch_;
};

class SymbolsTable final : public Table {
 public:
  SymbolsTable() : Table("symbols", "Names of code and data that are known", kSymbolColumns) {}
  bool of_run() const override { return false; }
  double rows(const RowSource& source) const override {
    double count = 1;
    for (const SymbolModule& m : source.symbols().modules()) {
      count += static_cast<double>(m.symbols.size());
    }
    return count;
  }
  std::unique_ptr<Cursor> open(RowSource& source) const override {
    return std::make_unique<SymbolCursor>(source);
  }
};

const BusTable kBusInstance;
const SymbolsTable kSymbolsInstance;

}  // namespace

const Table& kBusTable = kBusInstance;
const Table& kSymbolsTable = kSymbolsInstance;

}  // namespace citcat::sql
