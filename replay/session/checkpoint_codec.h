#pragma once
// A replayer's checkpoint as an archive keeps it, and back.

#include <cstdint>
#include <string>

#include "events/archive/checkpoint_series.h"
#include "formats/io/byte_reader.h"
#include "replay/session/replayer.h"

namespace citcat {

/// Everything of a checkpoint but memory, in the layout of docs/formats/archive.md, "Checkpoints".
std::vector<std::uint8_t> encode_checkpoint_state(const Replayer::Checkpoint& checkpoint);
/// The same back; pages stay empty. Throws FormatError if it is not a checkpoint, or uses more of
/// the schedule than `recording` has.
Replayer::Checkpoint decode_checkpoint_state(ByteReader& in, const Recording& recording);

/// Memory of a checkpoint.
SavedPageMap stored_pages(const Replayer::Checkpoint& checkpoint);
Memory::SavedPages saved_pages(const SavedPageMap& pages);

}  // namespace citcat
