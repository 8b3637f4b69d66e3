// SPDX-License-Identifier: Apache-2.0
// BiCGStab over cuSPARSE and cuBLAS, written as a good user of both would: scalars stay on the device, dot products are
// cuBLAS's, what lies between them is fused into one kernel each, and an iteration is one CUDA graph that is replayed.
// The host looks at the recurrence's residual every few iterations; where that meets the target, the true residual
// decides, and the method restarts from it where it does not.
// Source: van der Vorst 1992, right-preconditioned. Besides 2 products and 2 preconditioners, an iteration moves 14
// words a row in the fused kernels and 8 in the dot products.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "cusparse_tools.cuh"

namespace krilu::bench {

/// M^-1: a diagonal, which the fused kernels apply on their way, or work of several launches.
struct Preconditioner {
  const double* diagonal = nullptr;
  std::function<void(const Vector& from, const Vector& to)> apply;
};

struct SolveOutcome {
  std::string status;    // converged, max_iterations, breakdown, diverged, time_limit
  int iterations = 0;    // until the recurrence's residual met its last target, where it did
  int launched = 0;      // run in all: the host looks every few iterations only
  int restarts = 0;      // from a true residual that missed the target
  double residual = 0;   // the true one, relative, as the device has it
  Timing ms;             // of whole solves
  double record_ms = 0;  // graph recorded, instantiated and tried
  std::size_t nodes = 0;
  std::string refusal;  // why iterations are launched singly; empty where the graph is replayed
};

namespace bicgstab {

struct Scalars {
  double rho, rho_before, r0v, ts, tt, rr, alpha, omega;
  int count;
};

// 0 / 0 once the residual is zero: the iterations up to the host's next look then change nothing.
__device__ inline double quotient(double a, double b) { return b == 0 ? 0 : a / b; }
__device__ inline int this_row() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

// p = r0 = r;  p_hat = D p where D is given
__global__ void begin(int n, const double* r, double* r0, double* p, const double* d, double* p_hat) {
  const int i = this_row();
  if (i >= n) return;
  const double ri = r[i];
  r0[i] = ri;
  p[i] = ri;
  if (d) p_hat[i] = d[i] * ri;
}

// alpha = rho / (r0, v);  s = r - alpha v, in place of r;  s_hat = D s
__global__ void half_step(int n, Scalars* c, const double* v, double* r, const double* d, double* s_hat) {
  const int i = this_row();
  const double alpha = quotient(c->rho, c->r0v);
  if (i == 0) {  // nobody reads these two in this kernel
    c->alpha = alpha;
    c->rho_before = c->rho;
  }
  if (i >= n) return;
  const double si = r[i] - alpha * v[i];
  r[i] = si;
  if (d) s_hat[i] = d[i] * si;
}

// omega = (t, s) / (t, t);  x = x + alpha p_hat + omega s_hat;  r = s - omega t
__global__ void full_step(int n, Scalars* c, const double* p_hat, const double* s_hat, const double* t, double* x,
                          double* r) {
  const int i = this_row();
  const double alpha = c->alpha, omega = quotient(c->ts, c->tt);
  if (i == 0) c->omega = omega;
  if (i >= n) return;
  x[i] += alpha * p_hat[i] + omega * s_hat[i];
  r[i] -= omega * t[i];
}

// beta = (r0, r) / rho * alpha / omega;  p = r + beta (p - omega v);  p_hat = D p
__global__ void direction(int n, Scalars* c, const double* r, const double* v, double* p, const double* d,
                          double* p_hat, double* history, int most) {
  const int i = this_row();
  const double omega = c->omega, beta = quotient(c->rho, c->rho_before) * quotient(c->alpha, omega);
  if (i == 0) {
    if (c->count < most) history[c->count] = c->rr;
    ++c->count;
  }
  if (i >= n) return;
  const double pi = r[i] + beta * (p[i] - omega * v[i]);
  p[i] = pi;
  if (d) p_hat[i] = d[i] * pi;
}

// r = b - Ax, Ax in t
__global__ void residual(int n, const double* b, const double* t, double* r) {
  const int i = this_row();
  if (i < n) r[i] = b[i] - t[i];
}

}  // namespace bicgstab

class Bicgstab {
 public:
  static constexpr int look_every = 5, most_restarts = 10;

  Bicgstab(const Gpu& gpu, const Product& product, Preconditioner preconditioner, const Vector& b, int max_iterations)
      : gpu_(gpu),
        A_(product),
        M_(std::move(preconditioner)),
        b_(b),
        n_(static_cast<int>(b.size())),
        most_(max_iterations),
        x_(b.size()),
        r_(b.size()),
        r0_(b.size()),
        p_(b.size()),
        v_(b.size()),
        t_(b.size()),
        p_hat_(b.size()),
        s_hat_(b.size()),
        scalars_(1),
        history_(static_cast<std::size_t>(max_iterations + look_every)) {
    check(cudaMallocHost(seen_.out(), sizeof(double)), "allocating pinned memory");
  }

  /// Solves from x = 0, first untimed and then, where that converged, five times at most for the clock.
  SolveOutcome run(double rtol, const Effort& effort) {
    SolveOutcome out;
    double begun = now_ms();
    restart_from_zero();
    iterate();  // libraries load their kernels on first use
    gpu_.synchronise();
    graph_ = record(gpu_, [&] { iterate(); });
    if (graph_.graph && !replay_agrees()) {
      graph_.graph = Graph();
      graph_.refusal = "replayed iterations differ from launched ones";
    }
    out.record_ms = now_ms() - begun;
    out.nodes = graph_.nodes;
    out.refusal = graph_.refusal;

    begun = now_ms();
    std::vector<double> ms{solve(rtol, effort.seconds, out)};
    if (out.status == "converged") {
      ms.clear();
      do {
        ms.push_back(solve(rtol, effort.seconds, out));
      } while (static_cast<int>(ms.size()) < std::min(5, effort.repeat) && now_ms() - begun < 1e3 * effort.seconds);
    }
    out.ms = summary(ms);
    return out;
  }

  const Vector& solution() const { return x_; }

 private:
  unsigned blocks() const { return static_cast<unsigned>((n_ + 255) / 256); }
  bicgstab::Scalars* scalars() const { return scalars_.data(); }
  double* seen() const { return static_cast<double*>(static_cast<void*>(seen_)); }

  void dot(const Vector& a, const Vector& b, double* to) {
    check(cublasDdot(gpu_.blas, n_, a.data(), 1, b.data(), 1, to), "forming a dot product");
  }
  void precondition(const Vector& from, const Vector& to) {
    if (!M_.diagonal) M_.apply(from, to);
  }

  // r0 = p = r, rho = (r, r)
  void begin_from_residual() {
    bicgstab::begin<<<blocks(), 256, 0, gpu_.stream>>>(n_, r_.data(), r0_.data(), p_.data(), M_.diagonal,
                                                       p_hat_.data());
    check(cudaGetLastError(), "starting BiCGStab");
    dot(r_, r_, &scalars()->rho);
  }
  void restart_from_zero() {
    check(cudaMemsetAsync(x_.data(), 0, x_.size() * sizeof(double), gpu_.stream), "clearing x");
    check(cudaMemsetAsync(scalars(), 0, sizeof(bicgstab::Scalars), gpu_.stream), "clearing the scalars");
    check(cudaMemcpyAsync(r_.data(), b_.data(), b_.size() * sizeof(double), cudaMemcpyDeviceToDevice, gpu_.stream),
          "copying b");
    begin_from_residual();
  }

  void iterate() {
    using namespace bicgstab;
    const cudaStream_t stream = gpu_.stream;
    precondition(p_, p_hat_);
    A_.run(p_hat_, v_);
    dot(r0_, v_, &scalars()->r0v);
    half_step<<<blocks(), 256, 0, stream>>>(n_, scalars(), v_.data(), r_.data(), M_.diagonal, s_hat_.data());
    check(cudaGetLastError(), "iterating");
    precondition(r_, s_hat_);
    A_.run(s_hat_, t_);
    dot(t_, r_, &scalars()->ts);
    dot(t_, t_, &scalars()->tt);
    full_step<<<blocks(), 256, 0, stream>>>(n_, scalars(), p_hat_.data(), s_hat_.data(), t_.data(), x_.data(),
                                            r_.data());
    check(cudaGetLastError(), "iterating");
    dot(r0_, r_, &scalars()->rho);
    dot(r_, r_, &scalars()->rr);
    direction<<<blocks(), 256, 0, stream>>>(n_, scalars(), r_.data(), v_.data(), p_.data(), M_.diagonal, p_hat_.data(),
                                            history_.data(), static_cast<int>(history_.size()));
    check(cudaGetLastError(), "iterating");
  }

  double look(const double* device) {
    check(cudaMemcpyAsync(seen(), device, sizeof(double), cudaMemcpyDeviceToHost, gpu_.stream), "copying a residual");
    gpu_.synchronise();
    return *seen();
  }

  // A library may keep state on the host that a replay does not repeat (a counter passed to a kernel, say).
  bool replay_agrees() {
    double rr[2] = {};
    for (int replayed = 0; replayed < 2; ++replayed) {
      restart_from_zero();
      for (int k = 0; k < 3; ++k) {
        if (replayed) {
          graph_.launch(gpu_);
        } else {
          iterate();
        }
      }
      rr[replayed] = look(&scalars()->rr);
    }
    dot(b_, b_, &scalars()->rr);
    const double bb = look(&scalars()->rr);
    return std::abs(rr[0] - rr[1]) <= 1e-6 * std::max(rr[0], rr[1]) + 1e-24 * bb || !std::isfinite(rr[0]);
  }

  /// Milliseconds of one solve.
  double solve(double rtol, double seconds, SolveOutcome& out) {
    gpu_.synchronise();
    const double begun = now_ms();
    restart_from_zero();
    const double bb = look(&scalars()->rho), target = rtol * rtol * bb;
    int launched = 0, segment = 0;  // the iteration that the last restart came after
    out.restarts = 0;
    out.residual = std::numeric_limits<double>::quiet_NaN();
    double rr = bb;
    for (;;) {
      if (rr <= target) {
        A_.run(x_, t_);
        bicgstab::residual<<<blocks(), 256, 0, gpu_.stream>>>(n_, b_.data(), t_.data(), r_.data());
        check(cudaGetLastError(), "forming the residual");
        dot(r_, r_, &scalars()->rr);
        rr = look(&scalars()->rr);
        out.residual = std::sqrt(rr / (bb > 0 ? bb : 1));
        out.status = "converged";
        if (rr <= target) break;
        out.status = "breakdown";
        if (out.restarts == most_restarts || !std::isfinite(rr)) break;
        ++out.restarts;
        segment = launched;
        begin_from_residual();
      }
      out.status = "max_iterations";
      if (launched >= most_) break;
      out.status = "time_limit";
      if (now_ms() - begun > 1e3 * seconds) break;
      for (int k = 0; k < look_every; ++k) {
        if (graph_.graph) {
          graph_.launch(gpu_);
        } else {
          iterate();
        }
      }
      launched += look_every;
      rr = look(&scalars()->rr);
      out.status = "breakdown";
      if (!std::isfinite(rr)) break;
      out.status = "diverged";
      if (rr > 1e20 * bb) break;
    }
    const double ms = now_ms() - begun;
    out.launched = out.iterations = launched;
    const std::vector<double> history = history_.download();
    for (int k = segment; k < launched; ++k) {
      if (history[static_cast<std::size_t>(k)] <= target) {
        out.iterations = k + 1;
        break;
      }
    }
    return ms;
  }

  const Gpu& gpu_;
  const Product& A_;
  Preconditioner M_;
  const Vector& b_;
  int n_, most_;
  Vector x_, r_, r0_, p_, v_, t_, p_hat_, s_hat_;
  DeviceArray<bicgstab::Scalars> scalars_;
  DeviceArray<double> history_;
  Owned<void*, cudaFreeHost> seen_;
  Recording graph_;
};

}  // namespace krilu::bench
