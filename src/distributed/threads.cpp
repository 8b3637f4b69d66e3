// SPDX-License-Identifier: Apache-2.0
// The threads of one process as ranks. What a rank says stands in cells that only it writes, each with a flag in the
// cache line of the data: a sum over two ranks costs one line each way, and nobody adds to a shared counter.
//
// Two cells a rank take turns: a rank that writes its cell for the second time since knows that all have read it, for
// they have answered in the call between. A message is copied into a cell of its pair of ranks and out of it again, so
// that a rank which leaves by an exception takes no memory along that another one still reads.
// Cost: a call of few bytes is one store and size() - 1 loads of other cores' lines, 0.1 to 1 us; where there are more
// ranks than cores a few microseconds to a turn of the scheduler.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "krilu/buffer.hpp"
#include "krilu/communicator.hpp"
#include "krilu/error.hpp"

namespace krilu {

namespace {

constexpr std::uint32_t disturbed = 0x80000000u;  // this bit of a flag only wakes those who sleep on it
constexpr std::uint32_t count_bits = disturbed - 1;

/// Why others need not wait: a rank that failed, or one that has ended.
struct Ends {
  explicit Ends(int ranks) : ended(std::size_t(ranks)) {}
  std::atomic<int> failed{-1};  // the first rank that did
  std::vector<std::atomic<bool>> ended;
};

/// A count that one rank raises and others wait for.
class Flag {
 public:
  void set(std::uint32_t count) {
    value_.store(count & count_bits);  // in one order with the look at who sleeps, which a release is not
    value_.notify_all();
  }
  void disturb() {
    value_.fetch_or(disturbed);
    value_.notify_all();
  }
  /// Until the count is `needed`, or one or two beyond. Throws krilu::Error where `owner` will not raise it any more.
  void wait(std::uint32_t needed, int owner, const Ends& ends, int spins) const {
    constexpr int yields = 200;
    for (int tries = 0;; ++tries) {
      const std::uint32_t seen = value_.load(std::memory_order_acquire);
      if (((seen - needed) & count_bits) <= 2) return;
      // Only after the look at the count: what was said before the end still holds.
      const int failed = ends.failed.load();
      if (failed >= 0)
        throw Error(fmt::format("rank {} of {} ended with an error, and this one with it", failed, ends.ended.size()));
      if (ends.ended[std::size_t(owner)].load()) {
        if (((value_.load(std::memory_order_acquire) - needed) & count_bits) <= 2) return;
        throw Error(
            fmt::format("rank {} of {} has ended while others still wait for it: all ranks must make the same calls",
                        owner, ends.ended.size()));
      }
      if (tries < spins) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      } else if (tries < spins + yields) {
        std::this_thread::yield();
      } else {
        value_.wait(seen, std::memory_order_acquire);
      }
    }
  }

 private:
  std::atomic<std::uint32_t> value_{0};
};

enum class Call : std::uint32_t { gather, sum, done };
const char* name_of(Call c) { return c == Call::sum ? "sum" : "all_gather"; }

/// What a rank says to all.
struct alignas(64) Cell {
  static constexpr std::size_t capacity = 512 - 32;
  Flag flag;
  Call call = Call::gather;
  std::size_t bytes = 0;
  const void* data = nullptr;  // where there are more bytes than the cell holds
  std::byte small[capacity];
};
static_assert(sizeof(Cell) == 512);

/// What a rank says to another one.
struct alignas(64) Mailbox {
  struct Letter {
    Buffer<std::byte> data;
    std::size_t bytes = 0;
  };
  Flag sent;
  Letter letter[2];  // in turns
  alignas(64) Flag read;
};

struct Shared {
  explicit Shared(int n)
      : size(n),
        spins(std::thread::hardware_concurrency() >= unsigned(n) ? 1000 : 20),
        cells(std::size_t(2 * n)),
        mail(std::size_t(n) * std::size_t(n)),
        ends(n) {}

  Cell& cell(int rank, std::uint32_t call) { return cells[std::size_t(2 * rank) + call % 2]; }
  Mailbox& mailbox(int from, int to) { return mail[std::size_t(from) * std::size_t(size) + std::size_t(to)]; }

  /// Wakes all who sleep: they look at `ends`.
  void disturb() {
    for (Cell& c : cells) c.flag.disturb();
    for (Mailbox& m : mail) {
      m.sent.disturb();
      m.read.disturb();
    }
  }

  const int size;
  const int spins;
  std::vector<Cell> cells;
  std::vector<Mailbox> mail;
  Ends ends;
  std::exception_ptr first;  // of the rank ends.failed; read after all have ended
};

class ThreadRank final : public Communicator {
 public:
  ThreadRank(std::shared_ptr<Shared> shared, int rank)
      : shared_(std::move(shared)), rank_(rank), letters_out_(std::size_t(shared_->size)), letters_in_(letters_out_) {}

  int rank() const override { return rank_; }
  int size() const override { return shared_->size; }

  void all_gather(const void* mine, std::size_t bytes, void* all) override {
    const bool small = bytes <= Cell::capacity;
    say(Call::gather, mine, bytes, small ? bytes : 0);
    for (int r = 0; r < size(); ++r) {
      const Cell& c = shared_->cell(r, calls_);
      if (bytes) std::memcpy(static_cast<std::byte*>(all) + std::size_t(r) * bytes, small ? c.small : c.data, bytes);
    }
    if (!small) say(Call::done, nullptr, 0, 0);  // nobody's data may change before all have read it
  }

  void sum(std::span<double> values) override {
    if (size() == 1) return;
    constexpr std::size_t most = Cell::capacity / sizeof(double);
    for (std::size_t begin = 0; begin < values.size(); begin += most) {
      const std::span<double> part = values.subspan(begin, std::min(most, values.size() - begin));
      // The whole length is what the ranks compare, so that they also agree on the number of parts.
      say(Call::sum, part.data(), values.size_bytes(), part.size_bytes());
      for (int r = 0; r < size(); ++r) {
        const std::byte* theirs = shared_->cell(r, calls_).small;
        for (std::size_t k = 0; k < part.size(); ++k) {
          double v;
          std::memcpy(&v, theirs + k * sizeof v, sizeof v);
          part[k] = r == 0 ? v : part[k] + v;
        }
      }
    }
  }

  void start(std::span<const Sent> sends, std::span<const Received> receives) override {
    if (exchanging_) throw Error("an exchange is begun before the last one is finished: call finish() first");
    for (const Sent& s : sends) require_other(s.to);
    for (const Received& r : receives) require_other(r.from);
    for (const Sent& s : sends) {
      Mailbox& box = shared_->mailbox(rank_, s.to);
      const std::uint32_t number = ++letters_out_[std::size_t(s.to)];
      // The letter before the last one must have been read: this one takes its place.
      box.read.wait(number - 2, s.to, shared_->ends, shared_->spins);
      Mailbox::Letter& letter = box.letter[number % 2];
      if (letter.data.size() < s.bytes) letter.data = Buffer<std::byte>(s.bytes);
      if (s.bytes) std::memcpy(letter.data.data(), s.data, s.bytes);
      letter.bytes = s.bytes;
      box.sent.set(number);
    }
    receives_.assign(receives.begin(), receives.end());
    exchanging_ = true;
  }

  void finish() override {
    if (!exchanging_) throw Error("finish() without an exchange: call start() first");
    exchanging_ = false;
    for (const Received& r : receives_) {
      Mailbox& box = shared_->mailbox(r.from, rank_);
      const std::uint32_t number = ++letters_in_[std::size_t(r.from)];
      box.sent.wait(number, r.from, shared_->ends, shared_->spins);
      Mailbox::Letter& letter = box.letter[number % 2];
      if (letter.bytes != r.bytes)
        throw Error(fmt::format("rank {} sent {} bytes to rank {}, which expected {}: both must name the same length",
                                r.from, letter.bytes, rank_, r.bytes));
      if (r.bytes) std::memcpy(r.data, letter.data.data(), r.bytes);
      if (r.bytes > large_letter) Buffer<std::byte>().swap(letter.data);
      box.read.set(number);
    }
  }

 private:
  /// Longer letters are rare, those of a matrix that moves: their memory is given back.
  static constexpr std::size_t large_letter = std::size_t(4) << 20;

  /// Puts `copied` bytes into this rank's next cell and waits until all have filled theirs; `bytes` and `call` must be
  /// the same on all ranks.
  void say(Call call, const void* mine, std::size_t bytes, std::size_t copied) {
    ++calls_;
    Cell& own = shared_->cell(rank_, calls_);
    own.call = call;
    own.bytes = bytes;
    own.data = mine;
    if (copied) std::memcpy(own.small, mine, copied);
    own.flag.set(calls_);
    for (int r = 0; r < size(); ++r)
      if (r != rank_) shared_->cell(r, calls_).flag.wait(calls_, r, shared_->ends, shared_->spins);
    const Cell& zero = shared_->cell(0, calls_);
    for (int r = 1; r < size(); ++r) {
      const Cell& c = shared_->cell(r, calls_);
      if (c.call != zero.call || c.bytes != zero.bytes)
        throw Error(
            fmt::format("rank {} is in {} of {} bytes and rank 0 in {} of {}: all ranks must make the same calls", r,
                        name_of(c.call), c.bytes, name_of(zero.call), zero.bytes));
    }
  }

  void require_other(int r) const {
    if (r < 0 || r >= size() || r == rank_)
      throw Error(fmt::format("rank {} of {} cannot exchange messages with rank {}", rank_, size(), r));
  }

  std::shared_ptr<Shared> shared_;
  int rank_;
  std::uint32_t calls_ = 0;
  std::vector<std::uint32_t> letters_out_, letters_in_;
  std::vector<Received> receives_;
  bool exchanging_ = false;
};

void run_rank(const std::shared_ptr<Shared>& shared, int rank,
              const std::function<void(std::shared_ptr<Communicator>)>& f) noexcept {
  try {
    f(std::make_shared<ThreadRank>(shared, rank));
  } catch (...) {
    int nobody = -1;
    if (shared->ends.failed.compare_exchange_strong(nobody, rank)) shared->first = std::current_exception();
  }
  shared->ends.ended[std::size_t(rank)] = true;
  shared->disturb();
}

}  // namespace

void run_ranks(int ranks, const std::function<void(std::shared_ptr<Communicator>)>& f) {
  if (ranks < 1) throw Error(fmt::format("{} ranks: there must be one or more", ranks));
  const auto shared = std::make_shared<Shared>(ranks);
  std::vector<std::thread> threads;
  threads.reserve(std::size_t(ranks) - 1);
  try {
    for (int r = 1; r < ranks; ++r) threads.emplace_back([&shared, &f, r] { run_rank(shared, r, f); });
  } catch (const std::system_error& e) {
    const std::string sentence = fmt::format("only {} of {} threads could be started ({}): ask for fewer ranks",
                                             threads.size() + 1, ranks, e.what());
    run_rank(shared, 0, [&](const auto&) { throw Error(sentence); });
  }
  if (int(threads.size()) == ranks - 1) run_rank(shared, 0, f);
  for (std::thread& t : threads) t.join();
  if (shared->first) std::rethrow_exception(shared->first);
}

}  // namespace krilu
