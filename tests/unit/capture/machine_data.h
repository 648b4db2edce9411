#pragma once
// The captures of ../shared/data/machine and their ground truth, read without any code of the
// importer: what it is checked against must not come from it.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace citcat::test {

/// A 40-byte record as data/machine/FORMAT.md section 2 lays it out.
struct MonitorRecord {
  std::uint64_t icount;
  std::uint32_t clk, addr, rep;
  std::uint8_t type, size, flags, burst;
  std::uint8_t data[16];
};
static_assert(sizeof(MonitorRecord) == 40);

struct MonitorInterrupt {
  std::uint64_t icount;
  std::uint32_t rep;
  std::uint8_t vector;
};

/// DMA into memory.
struct MonitorDma {
  std::uint64_t icount;
  std::uint32_t address;
  std::vector<std::uint8_t> data;
};

/// One capture's folder.
class MachineData {
 public:
  explicit MachineData(std::string folder) : folder_(std::move(folder)) {}

  std::string path(const std::string& file) const { return folder_ + "/" + file; }
  bool has(const std::string& file) const;
  std::vector<MonitorRecord> records(char form) const;
  /// Pages by physical address.
  std::map<std::uint32_t, std::vector<std::uint8_t>> pages(const std::string& file) const;
  std::vector<MonitorInterrupt> interrupts() const;
  std::vector<MonitorDma> dma_writes() const;
  /// Name and value of each dword of initial_state.csv.
  std::map<std::string, std::uint32_t> initial_state() const;
  std::uint64_t meta(const std::string& key) const;
  /// A number of one bus form.
  std::uint64_t meta(char form, const std::string& key) const;

 private:
  std::string folder_;
};

/// Folder of ../shared/data/machine; "" when it is not there.
std::string machine_folder();
/// Names of the captures there and the bus forms they have, e.g. {"lin_user_tiny", 'A'}.
std::vector<std::pair<std::string, char>> machine_captures();
/// The same of ../shared/data/machine64, all or only the tiny ones. MachineData reads them too.
std::string machine64_folder();
std::vector<std::pair<std::string, char>> machine64_captures();
std::vector<std::pair<std::string, char>> tiny_machine64_captures();

}  // namespace citcat::test
