// QEMU's record/replay log, of any bytes: it is read to some end, and says no more than it holds.

#include <cstdint>

#include "cli/record/replay_log.h"
#include "formats/io/error.h"
#include "fuzz/file_in_memory.h"
#include "fuzz/fuzz_target.h"

CITCAT_FUZZ_TARGET(replay_log) {
  const citcat::fuzz::FileInMemory file({data, size});
  const citcat::ReplayLog log = citcat::read_replay_log(file.path());
  CITCAT_ASSERT(log.sent.size() + log.typed.size() <= size);
  for (const auto& typed : log.typed) CITCAT_ASSERT(typed.text.size() <= size);
  return 0;
}
