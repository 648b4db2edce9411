// Gives a fuzz target a main() where there is no libFuzzer: every file named, or found in a folder
// named, is run once. Ordinary builds replay the corpus this way, so that targets cannot rot and
// every crash ever found stays fixed.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

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
bool run_input(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file.good() && !file.eof()) return false;
  // A copy of exactly this size, so that sanitizers see a read of one byte too many.
  const std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
  LLVMFuzzerTestOneInput(input.data(), input.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::filesystem::path> inputs = collect_inputs({argv + 1, argv + argc});
  if (inputs.empty()) {
    std::fprintf(stderr, "no input files: a fuzz target without a corpus tests nothing\n");
    return 1;
  }
  for (const std::filesystem::path& input : inputs) {
    try {
      if (run_input(input)) continue;
      std::fprintf(stderr, "%s: cannot be read\n", input.c_str());
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: unexpected exception: %s\n", input.c_str(), error.what());
    }
    return 1;
  }
  std::printf("%zu inputs\n", inputs.size());
  return 0;
}
