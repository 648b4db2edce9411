#include "formats/io/memory_limit.h"

#include <atomic>

#include "formats/io/error.h"

namespace citcat {
namespace {

std::atomic<std::uint64_t> limit{kDefaultMemoryLimit};

}  // namespace

void set_memory_limit(std::uint64_t bytes) { limit = bytes; }

std::uint64_t memory_limit() { return limit; }

void require_memory(std::uint64_t bytes, const std::string& name, std::uint64_t offset,
                    std::string_view what) {
  if (bytes <= memory_limit()) return;
  throw FormatError(name, offset,
                    std::string(what) + ": expected at most the " + std::to_string(memory_limit()) +
                        " bytes that --memory-limit allows, found " + std::to_string(bytes) +
                        " bytes");
}

void refuse_memory(std::string_view what, std::string_view where) {
  throw Error(std::string(what) + " takes more than the " + std::to_string(memory_limit()) +
              " bytes of memory that --memory-limit allows, at " + std::string(where));
}

}  // namespace citcat
