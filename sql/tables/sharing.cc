// What the processors of a machine communicate.

#include "sql/tables/vector_cursor.h"

namespace citcat::sql {
namespace {

using enum Column::Type;
using enum Column::Use;

enum SharingColumn : int {
  kSharingPosition,
  kSharingAddress,
  kSharingPhysical,
  kSharingSize,
  kSharingWriter,
  kSharingWriterPosition,
  kSharingWriterAddress,
};

constexpr Column kSharingColumns[] = {
    {integer, exact, "position", "instructions completed before the one that reads"},
    {Column::Type::address, none, "address",
     "linear address of the instruction that reads; for an interrupt's delivery, of its "
     "handler's first one"},
    {Column::Type::address, none, "physical", "physical address of the first of the bytes"},
    {integer, none, "size", "bytes that it reads and another processor wrote"},
    {integer, none, "writer", "number of the processor that wrote them"},
    {integer, none, "writer_position",
     "instructions that the writer had completed before the one that wrote the last of them"},
    {Column::Type::address, none, "writer_address",
     "linear address of the instruction that wrote them, as for `address`"},
};

struct SharingForm {
  using Row = tools::Communication;
  static const std::vector<Row>& rows(const WholeRun& run) { return run.rows.sharing; }
  static bool is_row(const Row&) { return true; }
  static std::uint64_t position(const Row& row) { return row.read.position.instruction; }
  static Cell cell(int column, const Row& row, const RowSource&, const WholeRun&, std::string&) {
    switch (column) {
      case kSharingPosition:
        return Cell::of(row.read.position.instruction);
      case kSharingAddress:
        return Cell::of(row.read.instruction.value);
      case kSharingPhysical:
        return Cell::of(row.first.value);
      case kSharingSize:
        return Cell::of(row.bytes);
      case kSharingWriter:
        return Cell::of(row.writer);
      case kSharingWriterPosition:
        return Cell::of(row.written_at);
      case kSharingWriterAddress:
        return Cell::of(row.written_by.value);
      default:
        return Cell::null();
    }
  }
};

const VectorTable<SharingForm> kSharingInstance(
    "sharing", "Bytes that a processor reads and another one wrote", kSharingColumns,
    &RowNeeds::sharing);

}  // namespace

const Table& kSharingTable = kSharingInstance;

}  // namespace citcat::sql
