#pragma once
// Turns what a replay reports into lines of text.

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "replay/machine/executed_block.h"
#include "replay/machine/observer.h"

namespace citcat {

/// One line per report: position, kind and contents, numbers in hexadecimal. The lines do not
/// depend on whether code runs as blocks or instruction by instruction.
class LoggingObserver final : public Observer {
 public:
  /// `line` receives each line, without its end-of-line character.
  LoggingObserver(Interest interest, std::function<void(const std::string&)> line)
      : interest_(interest), line_(std::move(line)) {}

  Interest interest() const override { return interest_; }
  void instruction(const ExecutedInstruction& e, Position now) override;
  void fetch(PhysAddr a, std::uint32_t size, Position now) override;
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) override;
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override;
  void mapping(LinearAddr page, PhysAddr frame, Position now) override;
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void delivered(const DeliveredEvent& event, Position now) override;
  void external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now) override;
  void translation_dropped(LinearAddr page, Position now) override;
  void halted(Position now) override;
  void cache_flushed(bool write_back, Position now) override;
  void shutdown(Position now) override;
  void address_space(AddressSpaceId cr3, Position now) override;

 private:
  Interest interest_;
  std::function<void(const std::string&)> line_;
};

}  // namespace citcat
