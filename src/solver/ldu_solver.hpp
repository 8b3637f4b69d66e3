// SPDX-License-Identifier: Apache-2.0
// The LDU solver on one execution space: operator, preconditioner, method and vectors. The public LduSolver
// (ldu_solver.cpp) checks, chooses the names and reports.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "krilu/ldu.hpp"
#include "krylov/driver.hpp"
#include "krylov/make_method.hpp"
#include "mesh/ldu_operator.hpp"
#include "precond/face_dilu.hpp"
#include "precond/jacobi.hpp"

namespace krilu::solver {

class LduEngine {
 public:
  virtual ~LduEngine() = default;
  /// The device, for reports: "host", "cuda:0 (NVIDIA H200)".
  virtual std::string device() const = 0;
  /// `sweeps`: a preconditioner with sweeps may be asked for.
  virtual void analyse(const Mesh& mesh, bool sweeps) = 0;
  virtual const FaceLoopReport& loops() const = 0;
  /// Values, finite; lower is empty where it is upper.
  virtual void set_values(const LduView& a) = 0;
  /// Of the values that stand: preconditioner and method by name. Throws krilu::ZeroPivot.
  virtual void prepare(const std::string& precond, const std::string& method) = 0;
  /// `from_zero`: x holds zeros.
  virtual krylov::Outcome solve(std::span<const double> b, std::span<double> x, bool from_zero, Monitor& monitor) = 0;
  virtual std::size_t bytes() const = 0;
  virtual std::optional<triangular::Report> triangular() const = 0;
  virtual std::string preconditioner() const = 0;
};

/// GPU `number`. Throws krilu::Error where there is none.
std::unique_ptr<LduEngine> make_cuda_ldu_engine(const Options& options, const FaceLoopOptions& loops, int number);

/// Compiled once for each space.
template <class Space>
class LduEngineOn final : public LduEngine {
  using T = double;

 public:
  LduEngineOn(Space space, std::string device, const Options& options, const FaceLoopOptions& loops)
      : ex_(std::move(space)),
        device_(std::move(device)),
        options_(options),
        loop_options_(loops),
        kept_(std::make_shared<krylov::Kept<Space, T>>(ex_)) {}

  std::string device() const override { return device_; }

  void analyse(const Mesh& mesh, bool sweeps) override {
    enter();
    // What stood before goes before its successor comes.
    M_ = nullptr;
    dilu_.reset();
    other_.reset();
    method_.reset();
    method_name_.clear();
    driver_.reset();
    A_.reset();
    b_ = {};
    x_ = {};
    A_ = std::make_unique<mesh::LduOperator<Space>>(ex_, mesh, loop_options_);
    if (sweeps) dilu_ = precond::FaceDiluOn<Space>::make(*A_, mesh, triangular::strategy_by_name(options_.triangular));
    driver_ = std::make_unique<krylov::Driver<Space, T>>(ex_, mesh.cells);
    b_ = ex_.template allocate<T>(std::size_t(mesh.cells));
    x_ = ex_.template allocate<T>(std::size_t(mesh.cells));
  }
  const FaceLoopReport& loops() const override { return A_->loops().report(); }

  void set_values(const LduView& a) override {
    enter();
    A_->set_values(a.diagonal, a.upper, a.lower);
  }
  void prepare(const std::string& precond, const std::string& method) override {
    enter();
    kept_->iterations.renew();
    M_ = nullptr;
    other_.reset();
    if (precond == "dilu" || precond == "dic") {
      dilu_->factor(*A_);
      M_ = dilu_.get();
    } else {
      if (precond == "jacobi")
        other_ = std::make_unique<precond::Jacobi<Space, T>>(ex_, reciprocal_diagonal());
      else
        other_ = std::make_unique<precond::None<Space, T>>(ex_, std::size_t(A_->cells()));
      M_ = other_.get();
    }
    if (method_name_ == method) return;
    method_.reset();
    method_ = krylov::make_method<Space, T>(ex_, method, A_->cells(), options_.restart);
    method_name_ = method;
  }

  krylov::Outcome solve(std::span<const double> b, std::span<double> x, bool from_zero, Monitor& monitor) override {
    enter();
    A_->to_cells(b_, b);
    if (from_zero)
      ex_.clear(x_);
    else
      A_->to_cells(x_, x);
    ex_.rehearse(M_->trials_left());
    krylov::Outcome out =
        driver_->run(*method_, *A_, *M_, b_, x_, {options_.rtol, options_.atol, options_.norm, options_.max_iterations},
                     monitor, kept_);
    A_->from_cells(x, x_);
    return out;
  }

  std::size_t bytes() const override {
    std::size_t sum = b_.bytes() + x_.bytes();
    if (A_) sum += A_->bytes();
    if (dilu_) sum += dilu_->bytes();
    if (other_) sum += other_->bytes();
    if (method_) sum += method_->bytes();
    if (driver_) sum += driver_->bytes();
    return sum;
  }
  std::optional<triangular::Report> triangular() const override { return M_ ? M_->triangular() : std::nullopt; }
  std::string preconditioner() const override { return dilu_ ? dilu_->description() : std::string(); }

  // Public because nvcc takes kernels in public members only.
  exec::Array<T> reciprocal_diagonal() const {
    auto rd = ex_.template allocate<T>(std::size_t(A_->cells()));
    const auto to = rd.view();
    const auto diagonal = A_->coefficients().diagonal;
    ex_.for_each(
        rd.size(), KRILU_FN(Index i) { to[i] = T(1) / diagonal[i]; });
    return rd;
  }

 private:
  void enter() const {
    if constexpr (requires { ex_.make_current(); }) ex_.make_current();
  }

  Space ex_;
  std::string device_;
  Options options_;
  FaceLoopOptions loop_options_;
  std::unique_ptr<mesh::LduOperator<Space>> A_;
  std::unique_ptr<precond::FacePreconditioner<Space>> dilu_;
  std::unique_ptr<precond::Preconditioner<Space, T>> other_;  // where it is not dilu
  precond::Preconditioner<Space, T>* M_ = nullptr;            // one of the two
  std::unique_ptr<krylov::Method<Space, T>> method_;
  std::string method_name_;
  std::unique_ptr<krylov::Driver<Space, T>> driver_;
  std::shared_ptr<krylov::Kept<Space, T>> kept_;  // by one solve for the next
  exec::Array<T> b_, x_;
};

}  // namespace krilu::solver
