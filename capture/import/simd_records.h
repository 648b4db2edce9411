#pragma once
// Examines sixteen bus records at a time with vectors of 64 bytes: whether they belong to a run,
// and their fields as columns.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "events/access_run.h"
#include "formats/captures/bus_record.h"

namespace citcat {

class SimdRecords {
 public:
  /// Records that have type, size, flags and burst in common.
  struct Kind {
    std::uint32_t key = 0;    ///< these four, type lowest
    std::uint8_t number = 0;  ///< what records of it are noted as
    // The address has at most the value `last` in its bits `within`, below 16.
    std::uint8_t within = 0, last = 0;
    std::uint32_t shape = 0;  ///< access_shape()
  };
  static constexpr std::size_t kMaxKinds = 32;

  /// Records of these kinds are taken from now on, as far as there is room for them.
  void set_kinds(std::span<const Kind> kinds);
  /// There was room for all: no record that take() stopped at would do by its kind.
  bool has_all() const { return has_all_; }

  /// State after the last record that was taken.
  struct Last {
    std::uint64_t instructions = 0;
    std::uint32_t clock = 0;
    std::uint16_t flags = 0;  ///< of all that were taken
  };
  /// Takes records from the beginning of `records` on, up to the first that is not of the kinds,
  /// not correct, not counted or before the one before it. Returns how many. Their fields go into
  /// `columns`, their kinds into `number`, from `at` on; there is room for all, rounded up to 16.
  /// Wants has_simd_vectors().
  std::size_t take(std::span<const std::uint8_t> records, std::size_t at, Last& last,
                   AccessColumns& columns, std::span<std::uint8_t> number) const;

  /// Adds whole rows of 8 records, as far as `records` has them, to columns of words, and what the
  /// columns held before each row to `behind`. Returns how many records that are; stops before a
  /// row that has a record of type `end`. Wants has_simd_vectors().
  static constexpr std::size_t kRowRecords = 8;
  static constexpr std::size_t kRowWords = kRowRecords * kBusRecordBytes / sizeof(std::uint64_t);
  using Row = std::array<std::uint64_t, kRowWords>;
  static std::size_t add_rows(std::span<const std::uint8_t> records, std::uint8_t end, Row& column,
                              Row& behind);

 private:
  static constexpr unsigned kSlotBits = 7;

  // All have a place for each kind; `place_` finds it by the highest bits of key * factor_.
  std::uint32_t factor_ = 1;
  std::size_t kinds_ = 0;
  bool has_all_ = false;
  alignas(64) std::array<std::uint8_t, std::size_t{1} << kSlotBits> place_{};
  alignas(64) std::array<std::uint32_t, kMaxKinds> key_{};  ///< no record has key 0
  /// Shape, and above it `within` and `last`.
  alignas(64) std::array<std::uint32_t, kMaxKinds> rule_{};
  alignas(64) std::array<std::uint8_t, 2 * kMaxKinds> number_{};
};

}  // namespace citcat
