#pragma once
// Bus records of a machine with several processors: each says which of them drove it
// (docs/formats/capture.md).

#include <cstdint>
#include <string>

#include "events/processors/bus_note.h"
#include "formats/captures/bus_record.h"

namespace citcat {

/// Which numbers the types have.
enum class RecordDialect : std::uint8_t {
  native,    ///< version 3 of the native format
  monitors,  ///< headerless records, in which an invalidation has the number of an SMI
};

/// A record, and what it is among those of several processors.
struct ProcessorRecord {
  enum class Kind : std::uint8_t {
    transaction,  ///< of the processor; `record` is as if it were the only one
    note,         ///< `note`, but for its index and its clock
    init,         ///< INIT came to the processor
    startup,      ///< SIPI, with the vector in data[0]
    cut,          ///< the capture was interrupted
    reached,      ///< how far the processor has come by the end
    high,         ///< nobody's: the upper half of addresses from here on
  };
  Kind kind = Kind::transaction;
  std::uint64_t upper = 0;  ///< bits 32 to 51 of its address in memory, for whoever reads all
  std::uint64_t clock = 0;  ///< for whoever reads all of them: without a wrap
  std::uint8_t agent = 0;   ///< the processor that drove it, or one of the other bus masters
  bool shared = false, locked = false;
  bool of_local_apic = false;  ///< an interrupt, and no NMI
  BusRecord record;
  BusNote note;
};

/// FormatError's text if it is not a record of the dialect, or "".
std::string read_processor_record(const BusRecord& record, RecordDialect dialect,
                                  std::uint32_t bus_bytes, ProcessorRecord& out);

}  // namespace citcat
