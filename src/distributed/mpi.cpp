// SPDX-License-Identifier: Apache-2.0
// MPI as a communicator: MPI_Allgather for what all say, Isend and Irecv for messages. Cost: MPI's own; a sum of a few
// numbers is one Allgather, whose answer is the same bits on every rank whatever algorithm MPI chooses, which MPI does
// not promise of Allreduce.
#define OMPI_SKIP_MPICXX  // the C++ bindings that MPI gave up
#define MPICH_SKIP_MPICXX
#include <mpi.h>
// mpi.h first: it decides what krilu/mpi.hpp declares.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <string_view>
#include <thread>
#include <vector>

#include "distributed/mpi.hpp"
#include "krilu/error.hpp"
#include "krilu/mpi.hpp"

namespace krilu {

namespace {

std::string words_of(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return std::string(text, std::size_t(length));
}

void require(int code, const char* call) {
  if (code != MPI_SUCCESS) throw Error(fmt::format("{} failed: {}", call, words_of(code)));
}

/// A duplicate of a communicator that returns its errors.
class OwnComm {
 public:
  explicit OwnComm(MPI_Comm comm) : exceptions_(std::uncaught_exceptions()) {
    require(MPI_Comm_dup(comm, &comm_), "MPI_Comm_dup");
    require(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  }
  ~OwnComm() {
    int finalised = 0;
    MPI_Finalized(&finalised);
    // All ranks would have to free it, and where an exception passes through they may not be there.
    if (!finalised && std::uncaught_exceptions() <= exceptions_) MPI_Comm_free(&comm_);
  }
  OwnComm(const OwnComm&) = delete;
  OwnComm& operator=(const OwnComm&) = delete;
  MPI_Comm get() const { return comm_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  int exceptions_;
};

class MpiRank final : public Communicator {
 public:
  MpiRank(MPI_Comm comm, const distributed::MpiTuning& tuning) : comm_(comm), tuning_(tuning) {
    require(MPI_Comm_rank(comm_.get(), &rank_), "MPI_Comm_rank");
    require(MPI_Comm_size(comm_.get(), &size_), "MPI_Comm_size");
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void all_gather(const void* mine, std::size_t bytes, void* all) override {
    if (bytes > std::size_t(std::numeric_limits<int>::max()))
      throw Error(fmt::format("all_gather of {} bytes a rank: MPI takes fewer than 2^31; use more ranks", bytes));
    const int n = int(bytes);
    require(MPI_Allgather(mine, n, MPI_BYTE, all, n, MPI_BYTE, comm_.get()), "MPI_Allgather");
  }

  void sum(std::span<double> values) override {
    if (size_ <= tuning_.gathered) return Ranks::sum(values);
    constexpr std::size_t most = std::size_t(1) << 27;  // numbers in a call
    for (std::size_t begin = 0; begin < values.size(); begin += most) {
      double* const v = values.data() + begin;
      const int n = int(std::min(most, values.size() - begin));
      require(MPI_Reduce(rank_ == 0 ? MPI_IN_PLACE : v, v, n, MPI_DOUBLE, MPI_SUM, 0, comm_.get()), "MPI_Reduce");
      require(MPI_Bcast(v, n, MPI_DOUBLE, 0, comm_.get()), "MPI_Bcast");
    }
  }

  void start(std::span<const Sent> sends, std::span<const Received> receives) override {
    if (exchanging_) throw Error("an exchange is begun before the last one is finished: call finish() first");
    for (const Sent& s : sends) require_other(s.to);
    for (const Received& r : receives) require_other(r.from);
    requests_.clear();
    expected_.clear();
    for (const Received& r : receives)
      in_pieces(r.bytes, [&](std::size_t at, int n) {
        expected_.push_back({r.from, n});
        require(MPI_Irecv(static_cast<char*>(r.data) + at, n, MPI_BYTE, r.from, tag, comm_.get(), next_request()),
                "MPI_Irecv");
      });
    for (const Sent& s : sends)
      in_pieces(s.bytes, [&](std::size_t at, int n) {
        require(MPI_Isend(static_cast<const char*>(s.data) + at, n, MPI_BYTE, s.to, tag, comm_.get(), next_request()),
                "MPI_Isend");
      });
    exchanging_ = true;
  }

  void finish() override {
    if (!exchanging_) throw Error("finish() without an exchange: call start() first");
    exchanging_ = false;
    // One after another: where a message is too long, Open MPI 4.1's Waitall may never return.
    for (std::size_t k = 0; k < requests_.size(); ++k) {
      MPI_Status status;
      const int code = MPI_Wait(&requests_[k], &status);
      int kind = code;
      if (code != MPI_SUCCESS) MPI_Error_class(code, &kind);
      if (kind != MPI_ERR_TRUNCATE) require(code, "MPI_Wait");
      if (k >= expected_.size()) continue;
      int n = -1;
      if (code == MPI_SUCCESS) MPI_Get_count(&status, MPI_BYTE, &n);
      if (n != expected_[k].bytes)
        throw Error(fmt::format("rank {} sent {} bytes to rank {}, which expected {}: both must name the same length",
                                expected_[k].from, n < 0 ? "more" : fmt::format("{}", n), rank_, expected_[k].bytes));
    }
  }

 private:
  static constexpr int tag = 0;
  struct Expected {
    int from;
    int bytes;
  };

  /// f(begin, bytes) for the pieces of a message that MPI can count; an empty message is one piece.
  template <class F>
  void in_pieces(std::size_t bytes, F f) const {
    std::size_t at = 0;
    do {
      const std::size_t n = std::min(bytes - at, tuning_.longest);
      f(at, int(n));
      at += n;
    } while (at < bytes);
  }
  MPI_Request* next_request() { return &requests_.emplace_back(MPI_REQUEST_NULL); }
  void require_other(int r) const {
    if (r < 0 || r >= size_ || r == rank_)
      throw Error(fmt::format("rank {} of {} cannot exchange messages with rank {}", rank_, size_, r));
  }

  OwnComm comm_;
  distributed::MpiTuning tuning_;
  int rank_ = 0, size_ = 1;
  std::vector<MPI_Request> requests_;  // those of expected_ first
  std::vector<Expected> expected_;
  bool exchanging_ = false;
};

/// Whether all ranks come here with the same sentence before the time is over.
bool all_say(MPI_Comm comm, int size, const std::string& sentence) {
  constexpr auto patience = std::chrono::milliseconds(500);
  const std::uint64_t mine = std::hash<std::string_view>()(sentence);
  std::vector<std::uint64_t> all(static_cast<std::size_t>(size));
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Iallgather(&mine, 1, MPI_UINT64_T, all.data(), 1, MPI_UINT64_T, comm, &request) != MPI_SUCCESS) return false;
  const auto end = std::chrono::steady_clock::now() + patience;
  for (int done = 0; !done;) {
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (!done && std::chrono::steady_clock::now() > end) return false;
    if (!done) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return std::all_of(all.begin(), all.end(), [&](std::uint64_t h) { return h == mine; });
}

}  // namespace

std::shared_ptr<Communicator> distributed::mpi_communicator(MPI_Comm comm, const MpiTuning& tuning) {
  return std::make_shared<MpiRank>(comm, tuning);
}
std::shared_ptr<Communicator> mpi_communicator(MPI_Comm comm) { return distributed::mpi_communicator(comm, {}); }

struct MpiSession::Body {
  explicit Body(bool ours) : initialised_here(ours), failures(MPI_COMM_WORLD) {}
  bool initialised_here;
  OwnComm failures;  // where failing ranks look for one another
  std::shared_ptr<Communicator> world = mpi_communicator(MPI_COMM_WORLD);
  int exceptions = std::uncaught_exceptions();
};

MpiSession::MpiSession(int& argc, char**& argv) {
  int before = 0, level = 0;
  require(MPI_Initialized(&before), "MPI_Initialized");
  if (!before) require(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level), "MPI_Init_thread");
  body_ = std::make_unique<Body>(!before);
}

MpiSession::~MpiSession() {
  const bool finalise = body_->initialised_here && std::uncaught_exceptions() <= body_->exceptions;
  body_.reset();
  int finalised = 0;
  MPI_Finalized(&finalised);
  if (finalise && !finalised) MPI_Finalize();
}

std::shared_ptr<Communicator> MpiSession::communicator() const { return body_->world; }

void MpiSession::abort(const std::string& sentence, int status) {
  const int rank = body_->world->rank(), size = body_->world->size();
  const bool all = all_say(body_->failures.get(), size, sentence);
  if (!all || rank == 0) {
    const std::string line = all ? sentence + "\n" : fmt::format("rank {} of {}: {}\n", rank, size, sentence);
    std::fflush(stdout);
    std::fputs(line.c_str(), stderr);
    std::fflush(stderr);
  } else {
    // Rank 0 writes the sentence and ends all. Should it not, this rank does.
    std::this_thread::sleep_for(std::chrono::seconds(2));
  }
  MPI_Abort(MPI_COMM_WORLD, status);
  std::_Exit(status);
}

}  // namespace krilu
