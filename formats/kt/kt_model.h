#pragma once
// Predicting the next record of a KT trace from those before it. A trace repeats itself: the same
// instruction has the same bytes, is mostly followed by the same instruction, and uses addresses
// that follow from registers, and those from earlier addresses. What is predicted right costs a
// small fraction of a bit.

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "formats/captures/eip_table.h"
#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"
#include "formats/io/error.h"
#include "formats/io/range_coder.h"
#include "formats/kt/kt.h"
#include "formats/kt/kt_operands.h"
#include "formats/kt/kt_registers.h"

namespace citcat {

/// What is decoded is not what was encoded. Who decodes knows which file it is in.
class DamagedSegment : public FormatError {
 public:
  DamagedSegment() : FormatError("stored KT", 0, "expected a record, found damaged data") {}
};

/// The model, run alike by the encoder and the decoder. Both see whole records: the encoder the one
/// to code, the decoder the room for it.
class KtModel {
 public:
  KtModel();
  ~KtModel();

  /// Bytes beyond the end of a record that code() may read or write.
  static constexpr std::size_t kSlack = 32;
  /// More distinct instructions than this end a segment.
  static constexpr std::size_t kMaxTemplates = std::size_t{1} << 20;

  /// Codes the record at the beginning of `record` (which has at least kSlack bytes) and returns
  /// its length. The decoder throws FormatError for what no encoder writes.
  std::size_t encode(RangeEncoder& coder, std::span<const std::uint8_t> record);
  std::size_t decode(RangeDecoder& coder, std::span<std::uint8_t> record);

  /// How many times in a row an instruction that does not branch was followed as foreseen. These
  /// are most of a trace; only the lengths of such runs are coded, apart from everything else, as
  /// varints. The encoder writes the run that just ended and counts it.
  const ByteWriter& runs() const { return runs_; }
  std::uint64_t run_count() const { return run_count_; }
  /// Encoder: closes the last run.
  void finish_runs() { write_run(); }
  /// Decoder: where the runs are, which stay with their owner. Each is read when it is needed, so
  /// that they take no more memory than they are stored in.
  void read_runs_from(ByteReader runs) { runs_to_read_ = std::move(runs); }
  std::size_t template_count() const { return templates_.size(); }

 private:
  struct Predictor {
    std::uint32_t last = 0;
    std::uint32_t stride = 0;
    std::uint8_t history = 0;  ///< outcomes of the first choice, newest in bit 0
    std::uint8_t model_score = 8;
    std::uint8_t stride_score = 8;
  };
  /// An instruction: record bytes up to the addresses, and what is known of its executions.
  struct Template {
    std::array<std::uint64_t, 3> fixed{};
    std::uint8_t fixed_bytes = 8;
    std::uint8_t address_count = 0;
    std::uint8_t history = 0;
    bool target_is_static = false;  ///< address 0 is always operands.target
    KtFlow flow = KtFlow::next;
    KtEffect effect = KtEffect::none;
    std::uint32_t eip = 0, next_eip = 0;
    std::array<std::uint32_t, 2> successor{};  ///< template numbers + 1, last first
    std::uint32_t fall = 0;                    ///< template number + 1 of what follows in memory
    std::uint32_t same_eip = 0;                ///< chain: template number + 1
    KtOperands operands;
    std::array<KtAddressRule, kKtMaxAddresses> rule;
    std::array<Predictor, kKtMaxAddresses> address;
  };
  struct Guess {
    std::uint32_t number = 0;  ///< template number + 1
    std::uint16_t tag = 0;
    std::uint8_t confidence = 0;
  };
  /// Where the guesses for the current branch lie.
  struct GuessPlace {
    std::uint32_t far = 0, near = 0;
    std::uint16_t tag = 0;
  };
  struct Choice {
    std::uint32_t number = 0;
    std::uint8_t source = 0;
    std::uint8_t confidence = 0;
  };
  struct Models;
  /// The record to encode, or what decoding needs in its place.
  struct Window {
    std::array<std::uint64_t, 3> words{};
    std::span<const std::uint8_t> bytes;
  };

  template <typename Coder>
  std::uint32_t code_instruction(Coder& coder, const Window& window);
  template <typename Coder>
  std::uint32_t code_plain_next(Coder& coder, const Window& window, Template& t);
  template <typename Coder>
  std::uint32_t code_branch(Coder& coder, const Window& window, Template& t);
  template <typename Coder>
  std::uint32_t code_others(Coder& coder, const Window& window, const Template& t,
                            std::uint32_t tried);
  template <typename Coder>
  std::uint32_t code_escape(Coder& coder, const Window& window);
  template <typename Coder>
  std::uint32_t code_eip(Coder& coder, std::uint32_t eip);
  template <typename Coder>
  std::uint32_t code_template(Coder& coder, const Window& window, std::uint32_t eip);
  template <typename Coder>
  void code_addresses(Coder& coder, const Window& window, Template& t);
  template <typename Coder>
  std::uint32_t code_address(Coder& coder, Template& t, std::size_t slot, std::uint32_t address);
  template <typename Coder>
  std::uint32_t code_far(Coder& coder, std::uint32_t base, unsigned kind, std::uint32_t value);
  template <typename Coder>
  std::uint32_t code_word(Coder& coder, unsigned kind, std::uint32_t value);
  template <typename Coder>
  KtRecord code_other_record(Coder& coder, const Window& window);

  bool matches(std::uint32_t number, const Window& window) const;
  std::uint32_t add_template(const KtInstruction& instruction, bool target_is_static);
  Choice choose(const Template& t, const GuessPlace& place) const;
  GuessPlace guess_place() const;
  void learn_plain_next(Template& t, std::uint32_t next);
  void learn_branch(Template& t, const GuessPlace& place, std::uint32_t next);
  void learn_return(const Template& t, std::uint32_t next);
  void write_run();

  std::unique_ptr<Models> models_;
  std::vector<Template> templates_;
  EipTable by_eip_;  ///< the newest template of each, number + 1
  std::vector<Guess> far_, near_;
  std::vector<std::uint32_t> followers_;  ///< address that followed an address of a template
  KtRegisters registers_;
  std::array<std::uint32_t, 64> calls_{};  ///< return stack of template numbers + 1
  std::uint32_t call_top_ = 0;
  std::array<std::uint32_t, 16> interrupted_{};  ///< template numbers + 1 that interrupts put off
  std::uint32_t interrupted_top_ = 0;
  std::uint32_t current_ = 0;  ///< number of the template executed last + 1
  std::array<std::uint32_t, kKtMaxAddresses> addresses_{};  ///< of that execution
  std::uint64_t path_ = 0;  ///< outcomes of recent branches, newest in bit 0
  ByteWriter runs_;
  std::uint64_t run_count_ = 0;
  ByteReader runs_to_read_{{}, ""};
  std::uint64_t run_ = 0;
  bool has_run_ = false;
};

}  // namespace citcat
