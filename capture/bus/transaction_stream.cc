#include "capture/bus/transaction_stream.h"

namespace citcat {
namespace {

constexpr std::uint64_t kProgressEvery = 1 << 16;

}  // namespace

bool TransactionStream::next(BusTransaction& t) {
  const auto found = peek();
  if (found.empty()) return false;
  t = found.front();
  skip(1);
  return true;
}

bool TransactionStream::next_segment() {
  for (auto left = peek(); !left.empty(); left = peek()) skip(left.size());
  at_end_ = !source_.next_segment();
  if (!at_end_) ++segment_;
  return !at_end_;
}

bool TransactionStream::read_block(std::size_t most) {
  if (at_end_) return false;
  block_ = source_.next(most);
  at_end_ = block_.empty();
  count(block_.size());
  return !at_end_;
}

void TransactionStream::count(std::size_t transactions) {
  const std::uint64_t before = read_;
  read_ += transactions;
  if (read_ / kProgressEvery != before / kProgressEvery && progress_) progress_(read_);
}

}  // namespace citcat
