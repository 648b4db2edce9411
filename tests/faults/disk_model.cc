#include "faults/disk_model.h"

#include <sstream>
#include <stdexcept>

namespace citcat::testing {
namespace {

std::string absolute(const std::string& name, const std::string& folder) {
  return name.starts_with('/') ? name : folder + "/" + name;
}

}  // namespace

std::vector<DiskStep> read_disk_log(const std::string& log, const std::string& folder) {
  std::vector<DiskStep> steps;
  for (std::size_t at = 0; at < log.size();) {
    const std::size_t end = log.find('\n', at);
    std::istringstream line(log.substr(at, end - at));
    std::string what, name;
    std::uint64_t number = 0, size = 0;
    line >> what >> number >> size;
    std::getline(line, name);
    name.erase(0, 1);
    at = end + 1;
    DiskStep step;
    step.at = number;
    if (what == "write") {
      step.kind = DiskStep::Kind::write;
      step.bytes = log.substr(at, size);
      at += size;
    } else if (what == "truncate") {
      step.kind = DiskStep::Kind::truncate;
    } else if (what == "fsync") {
      step.kind = DiskStep::Kind::flush;
    } else if (what == "syncdir") {
      step.kind = DiskStep::Kind::flush_folder;
    } else if (what == "rename") {
      step.kind = DiskStep::Kind::rename;
      const std::size_t tab = name.find('\t');
      step.to = absolute(name.substr(tab + 1), folder);
      name.resize(tab);
    } else {
      throw std::runtime_error("a log of other things: " + what);
    }
    step.name = absolute(name, folder);
    steps.push_back(std::move(step));
  }
  return steps;
}

void DiskModel::add(const std::string& name, const std::string& bytes) {
  names_[name] = std::make_shared<File>(File{bytes, {}});
  possible_ = {names_};
}

std::shared_ptr<DiskModel::File>& DiskModel::file(const std::string& name) {
  std::shared_ptr<File>& found = names_[name];
  if (!found) {
    found = std::make_shared<File>();
    possible_.push_back(names_);
  }
  return found;
}

void DiskModel::make(const DiskStep& step) {
  switch (step.kind) {
    case DiskStep::Kind::write:
    case DiskStep::Kind::truncate:
      file(step.name)->unsafe.push_back(step);
      break;
    case DiskStep::Kind::flush: {
      File& flushed = *file(step.name);
      for (const DiskStep& write : flushed.unsafe) apply(flushed.safe, write, false);
      flushed.unsafe.clear();
      break;
    }
    case DiskStep::Kind::rename: {
      const auto found = names_.find(step.name);
      if (found == names_.end()) break;  // a folder
      names_[step.to] = found->second;
      names_.erase(step.name);
      possible_.push_back(names_);
      break;
    }
    case DiskStep::Kind::flush_folder:
      possible_ = {names_};
      break;
  }
}

void DiskModel::apply(std::string& bytes, const DiskStep& step, bool half) {
  if (step.kind == DiskStep::Kind::truncate) {
    bytes.resize(step.at);
    return;
  }
  const std::string part = half ? step.bytes.substr(0, step.bytes.size() / 2) : step.bytes;
  if (bytes.size() < step.at + part.size()) bytes.resize(step.at + part.size());
  bytes.replace(step.at, part.size(), part);
}

std::optional<std::string> DiskModel::after_cut(const std::string& name, std::mt19937& random,
                                                unsigned luck) const {
  const Names& names = possible_[random() % possible_.size()];
  const auto found = names.find(name);
  if (found == names.end()) return std::nullopt;
  std::string bytes = found->second->safe;
  for (const DiskStep& step : found->second->unsafe) {
    const bool there = random() % 100 < luck;
    if (there) apply(bytes, step, random() % 8 == 0);
  }
  return bytes;
}

}  // namespace citcat::testing
