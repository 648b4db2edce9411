#pragma once
// The KT model of one form of records.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "formats/captures/eip_table.h"
#include "formats/kt/kt_model.h"
#include "formats/kt/kt_operands.h"
#include "formats/kt/kt_records.h"
#include "formats/kt/kt_registers.h"
#include "formats/kt/kt_statistics.h"

namespace citcat {

template <class Form>
class KtFormModel final : public KtModel {
 public:
  using Word = typename Form::Word;

  KtFormModel();
  ~KtFormModel() override;
  Coded encode(RangeEncoder& coder, std::span<const std::uint8_t> records, std::size_t size,
               std::uint64_t most) override;
  void decode(RangeDecoder& coder, std::span<std::uint8_t> room, std::size_t size,
              std::uint64_t most, Coded& done) override;

 private:
  struct Predictor {
    Word last = 0;
    Word stride = 0;
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
    Word eip = 0, next_eip = 0;
    std::array<std::uint32_t, 2> successor{};  ///< template numbers + 1, last first
    std::uint32_t fall = 0;                    ///< template number + 1 of what follows in memory
    std::uint32_t same_eip = 0;                ///< chain: template number + 1
    KtOperands operands;
    std::array<KtAddressRule, kKtMaxAddresses> rule;
    std::array<Predictor, kKtMaxAddresses> address;
  };
  /// What a record has of an instruction, without its addresses.
  struct Code {
    Word eip = 0;
    std::uint8_t type = 0;
    std::array<std::uint8_t, kKtMaxInstructionBytes> bytes{};
    std::size_t size() const { return type & 15; }
    std::span<const std::uint8_t> code() const { return {bytes.data(), size()}; }
  };
  /// The record to encode, kSlack bytes at least; null where one is decoded.
  using Window = const std::uint8_t*;
  static Code code_at(Window window);
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
    KtSource source = KtSource::successor;
    std::uint8_t confidence = 0;
  };
  /// A process or translation record.
  struct OtherRecord {
    bool process = false;
    Word first = 0, page = 0;  ///< process, or page frame and page
  };

  std::size_t encode_record(RangeEncoder& coder, Window window);
  std::size_t decode_record(RangeDecoder& coder, std::uint8_t* record);
  template <typename Coder>
  std::uint32_t code_instruction(Coder& coder, Window window);
  template <typename Coder>
  std::uint32_t code_plain_next(Coder& coder, Window window, Template& t);
  template <typename Coder>
  std::uint32_t code_first_next(Coder& coder, Window window);
  template <typename Coder>
  std::uint32_t code_unexpected_next(Coder& coder, Window window, const Template& t,
                                     std::uint32_t guess);
  template <typename Coder>
  std::uint32_t code_branch(Coder& coder, Window window, Template& t);
  template <typename Coder>
  std::uint32_t code_others(Coder& coder, Window window, const Template& t, std::uint32_t tried);
  template <typename Coder>
  std::uint32_t code_escape(Coder& coder, Window window);
  template <typename Coder>
  Word code_eip(Coder& coder, Word eip);
  template <typename Coder>
  std::uint32_t code_template(Coder& coder, Window window, Word eip);
  template <typename Coder>
  void code_addresses(Coder& coder, Window window, Template& t);
  template <typename Coder>
  Word code_address(Coder& coder, Template& t, std::size_t slot, Word address);
  template <typename Coder>
  Word code_unexpected_address(Coder& coder, const Predictor& p, const std::array<Word, 3>& guesses,
                               std::size_t kind, std::size_t which, Word address);
  template <typename Coder>
  Word code_far(Coder& coder, Word base, unsigned kind, Word value);
  template <typename Coder>
  Word code_word(Coder& coder, unsigned kind, Word value);
  template <typename Coder>
  OtherRecord code_other_record(Coder& coder, Window window);

  static bool matches(const Template& t, Window window);
  bool matches(std::uint32_t number, Window window) const {
    return number != 0 && matches(templates_[number - 1], window);
  }
  std::uint32_t add_template(const Code& code, bool target_is_static);
  Choice choose(const Template& t, const GuessPlace& place) const;
  GuessPlace guess_place() const;
  void learn_plain_next(Template& t, std::uint32_t next);
  void learn_branch(Template& t, const GuessPlace& place, std::uint32_t next);
  void learn_return(const Template& t, std::uint32_t next);

  std::unique_ptr<KtStatistics<Form>> models_;
  std::vector<Template> templates_;
  EipTable by_eip_;  ///< the newest template of each, number + 1
  std::vector<Guess> far_, near_;
  std::vector<Word> followers_;  ///< address that followed an address of a template
  KtRegisters<Word> registers_;
  std::array<std::uint32_t, 64> calls_{};  ///< return stack of template numbers + 1
  std::uint32_t call_top_ = 0;
  std::array<std::uint32_t, 16> interrupted_{};  ///< template numbers + 1 that interrupts put off
  std::uint32_t interrupted_top_ = 0;
  std::uint32_t current_ = 0;                      ///< number of the template executed last + 1
  std::array<Word, kKtMaxAddresses> addresses_{};  ///< of that execution
  std::uint64_t path_ = 0;                         ///< outcomes of recent branches, newest in bit 0
};

}  // namespace citcat
