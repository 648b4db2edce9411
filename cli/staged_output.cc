#include "cli/staged_output.h"

#include <unistd.h>

#include "formats/io/error.h"
#include "formats/io/input.h"

namespace citcat {

void require_own_output(const std::string& path, bool json) {
  if (json && is_standard_output(path)) {
    throw UsageError("--json and -o " + path + ": both cannot go to the standard output");
  }
}

StagedOutput::StagedOutput(const std::string& path) : path_(path), kind_(output_kind(path)) {
  if (kind_ == OutputKind::standard && ::isatty(STDOUT_FILENO) == 1) {
    throw UsageError("-o " + path +
                     ": a recording is not text, and the standard output is a "
                     "terminal");
  }
  const std::string place =
      kind_ == OutputKind::replaced ? followed_output(path) : temporary_folder() + "/output";
  folder_.emplace(place, Temporary::Kind::folder);
  staged_ = beside("output");
}

void StagedOutput::finish() {
  if (kind_ == OutputKind::replaced) return put_into_place(staged_, path_);
  AtomicFile out(path_);
  InputStream in(staged_);
  for (auto block = in.next_block(); !block.empty(); block = in.next_block()) out.write(block);
  out.commit();
}

}  // namespace citcat
