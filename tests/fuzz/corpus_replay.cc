// The program fuzz_replay: runs a fuzz target on every file named, or found in a folder named.
//
//   fuzz_replay READER FILE|FOLDER...
//
// Ordinary builds replay each corpus this way, so that targets cannot rot and every crash ever
// found stays fixed.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "fuzz/fuzz_target.h"

namespace citcat::fuzz {

namespace {

/// All targets by the names of their readers.
std::map<std::string, FuzzTarget>& fuzz_targets() {
  static std::map<std::string, FuzzTarget> targets;
  return targets;
}

/// The regular files among `arguments`, those inside folders included, in a fixed order.
std::vector<std::filesystem::path> collect_inputs(const std::vector<std::string>& arguments) {
  std::vector<std::filesystem::path> inputs;
  for (const std::string& argument : arguments) {
    if (!std::filesystem::is_directory(argument)) {
      inputs.emplace_back(argument);
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argument)) {
      if (entry.is_regular_file()) inputs.push_back(entry.path());
    }
  }
  std::sort(inputs.begin(), inputs.end());
  return inputs;
}

/// False when the file cannot be read.
bool run_input(FuzzTarget target, const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file.good() && !file.eof()) return false;
  // A copy of exactly this size, so that sanitizers see a read of one byte too many.
  const std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
  target(input.data(), input.size());
  return true;
}

/// False when an input cannot be read, or the target throws: standard error says which.
bool run_inputs(FuzzTarget target, const std::vector<std::filesystem::path>& inputs) {
  for (const std::filesystem::path& input : inputs) {
    try {
      if (run_input(target, input)) continue;
      std::fprintf(stderr, "%s: cannot be read\n", input.c_str());
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: unexpected exception: %s\n", input.c_str(), error.what());
    }
    return false;
  }
  return true;
}

}  // namespace

RegisteredTarget::RegisteredTarget(const char* reader, FuzzTarget target) {
  fuzz_targets()[reader] = target;
}

}  // namespace citcat::fuzz

int main(int argc, char** argv) {
  const auto& targets = citcat::fuzz::fuzz_targets();
  const auto target = argc < 2 ? targets.end() : targets.find(argv[1]);
  if (target == targets.end()) {
    std::fprintf(stderr, "usage: fuzz_replay READER FILE|FOLDER...\nreaders:");
    for (const auto& [reader, run] : targets) std::fprintf(stderr, " %s", reader.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  const auto inputs = citcat::fuzz::collect_inputs({argv + 2, argv + argc});
  if (inputs.empty()) {
    std::fprintf(stderr, "no input files: a fuzz target without a corpus tests nothing\n");
    return 1;
  }
  if (!citcat::fuzz::run_inputs(target->second, inputs)) return 1;
  std::printf("%zu inputs\n", inputs.size());
  return 0;
}
