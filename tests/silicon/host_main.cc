// The replay's machine held to the processor we run on, instruction by instruction:
// docs/silicon.md. Exit code 1 when a difference has no explanation, 2 when there is no processor
// to be had.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <string>

#include "silicon/host_steps.h"
#include "silicon/wide_steps.h"

namespace {

using namespace citcat;
using namespace citcat::silicon;

struct Options {
  std::string mode;  ///< empty: all
  std::uint64_t seed = 1, count = 10000, seeds = 1;
  ExecutionPath path = ExecutionPath::instructions;

  bool wants(const std::string& name) const { return mode.empty() || mode == name; }
};

bool is_mode(const std::string& name) {
  for (const StepMode mode : kStepModes) {
    if (step_mode_name(mode) == name) return true;
  }
  for (const WideMode mode : kWideModes) {
    if (wide_mode_name(mode) == name) return true;
  }
  return false;
}

void print(const std::string& mode, const StepCounts& counts) {
  std::printf("%s: %llu steps, %llu equal\n", mode.c_str(),
              static_cast<unsigned long long>(counts.steps()),
              static_cast<unsigned long long>(counts.equal));
  const auto list = [](const char* kind, const auto& map) {
    for (const auto& [name, count] : map) {
      std::printf("  %s %s: %llu\n", kind, name.c_str(), static_cast<unsigned long long>(count));
    }
  };
  list("end", counts.ends);
  list("rule", counts.rules);
  list("not comparable:", counts.not_comparable);
  for (const auto& [key, found] : counts.unexplained) {
    std::printf("  DIFFERS %s: %llu\n    %s\n", key.c_str(),
                static_cast<unsigned long long>(found.count), found.first.c_str());
  }
}

int run(const Options& options) {
  bool all_explained = true;
  for (const StepMode mode : kStepModes) {
    if (!options.wants(step_mode_name(mode))) continue;
    StepCounts counts;
    for (std::uint64_t seed = options.seed; seed < options.seed + options.seeds; ++seed) {
      LockStep(options.path, seed).run(mode, options.count, counts);
    }
    print(step_mode_name(mode), counts);
    all_explained = all_explained && counts.unexplained.empty();
  }
  for (const WideMode mode : kWideModes) {
    if (!options.wants(wide_mode_name(mode))) continue;
    StepCounts counts;
    for (std::uint64_t seed = options.seed; seed < options.seed + options.seeds; ++seed) {
      WideLockStep(options.path, seed).run(mode, options.count, counts);
    }
    print(wide_mode_name(mode), counts);
    all_explained = all_explained && counts.unexplained.empty();
  }
  return all_explained ? 0 : 1;
}

std::optional<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--seed") {
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "--count") {
      options.count = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "--mode") {
      if (!is_mode(value)) return std::nullopt;
      options.mode = value;
    } else if (name == "--seeds") {
      options.seeds = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "--path") {
      options.path = value == "blocks" ? ExecutionPath::blocks : ExecutionPath::instructions;
    } else {
      return std::nullopt;
    }
  }
  if (argc % 2 == 0) return std::nullopt;
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Options> options = parse(argc, argv);
  if (!options) {
    std::fprintf(stderr,
                 "usage: host_steps [--mode flat32|code16|mixed|floating|integer64|vector64]\n"
                 "                  [--seed N] [--seeds N] [--count N]\n"
                 "                  [--path instructions|blocks]\n");
    return 2;
  }
  const std::string why = HostProcessor::unavailable();
  if (!why.empty()) {
    std::fprintf(stderr, "host_steps: %s\n", why.c_str());
    return 2;
  }
  try {
    return run(*options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "host_steps: %s\n", error.what());
    return 2;
  }
}
