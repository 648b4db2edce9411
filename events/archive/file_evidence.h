#pragma once
// The evidence of an archive, read chunk by chunk. Private to the archive; users have
// RecordingFile::evidence().

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "events/archive/container.h"
#include "events/archive/evidence_codec.h"
#include "events/machine/stand_ins.h"
#include "events/recording.h"

namespace citcat {

/// Reads the evidence chunks among `chunks`, those of one recording, one after the other. Throws
/// FormatError where one is damaged or lost.
class FileEvidenceReader final : public EvidenceReader {
 public:
  /// `stand_ins` may be null.
  FileEvidenceReader(std::shared_ptr<const ContainerReader> container,
                     std::vector<ChunkInfo> chunks,
                     std::shared_ptr<const StandIns> stand_ins = nullptr)
      : container_(std::move(container)),
        chunks_(std::move(chunks)),
        stand_ins_(std::move(stand_ins)) {}

  bool next(BusTransaction& out) override;
  std::uint8_t next_line(BusTransaction& out) override;
  std::span<const BusTransaction> upcoming() const override {
    return std::span(block_).subspan(next_, decoded_ - next_);
  }

 private:
  bool decode(bool lines);
  bool load_next_chunk();

  std::shared_ptr<const ContainerReader> container_;
  std::vector<ChunkInfo> chunks_;  ///< of the recording
  std::shared_ptr<const StandIns> stand_ins_;
  std::size_t at_ = 0;
  EvidenceChunk chunk_;
  static constexpr std::size_t kBlock = 128;
  std::array<BusTransaction, kBlock> block_;  ///< decoded ahead
  std::array<std::uint8_t, kBlock> parts_{};  ///< of next_line(): transactions that each of them is
  std::size_t next_ = 0, decoded_ = 0;        ///< of block_: the next to give, after the last
};

}  // namespace citcat
