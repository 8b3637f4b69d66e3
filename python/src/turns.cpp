// SPDX-License-Identifier: Apache-2.0
#include "turns.hpp"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <optional>

#include "krilu/error.hpp"

namespace nb = nanobind;

namespace krilu::python {

namespace {

/// How long the main thread sleeps before it looks for signals again.
constexpr std::chrono::milliseconds between_looks{20};

/// Whether Python runs its signal handlers in this thread. Takes Python's lock.
bool in_main_thread() {
  const nb::gil_scoped_acquire locked;
  const nb::module_ threading = nb::module_::import_("threading");
  return threading.attr("get_ident")().equal(threading.attr("main_thread")().attr("ident"));
}

/// A thread that does what the main thread gives it, one job at a time. It is never joined: it waits until the process
/// ends.
class Worker {
 public:
  Worker() {
    std::thread([this] { loop(); }).detach();
  }
  void start(const std::function<void()>& job) {
    {
      const std::lock_guard lock(mutex_);
      job_ = &job;
    }
    changed_.notify_all();
  }
  /// True where the job has ended, at the latest after `time`.
  bool done_within(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [this] { return !job_; });
  }

  const ::pid_t process = ::getpid();
  bool taken = false;

 private:
  void loop() {
    for (;;) {
      const std::function<void()>* job = nullptr;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return job_ != nullptr; });
        job = job_;
      }
      (*job)();
      {
        const std::lock_guard lock(mutex_);
        job_ = nullptr;
      }
      changed_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* job_ = nullptr;
};

/// The main thread's worker; null while it works: a signal handler has come back here. A forked process has no threads
/// but its main one, and gets a worker of its own.
Worker* take_worker() {
  static Worker* worker = nullptr;
  if (!worker || worker->process != ::getpid()) worker = new Worker;
  if (worker->taken) return nullptr;
  worker->taken = true;
  return worker;
}

}  // namespace

/// Made without Python's lock.
class Turns::Turn {
 public:
  explicit Turn(Turns& turns) : turns_(turns) {
    const std::thread::id self = std::this_thread::get_id();
    if (turns_.holder_ == self)
      throw Error("a signal handler cannot use the solver whose work it interrupts: let it raise an exception");
    if (!turns_.mutex_.try_lock()) wait();
    turns_.holder_ = self;
  }
  ~Turn() {
    turns_.holder_ = std::thread::id{};
    turns_.mutex_.unlock();
  }

 private:
  /// Signals are the main thread's, which looks for them meanwhile. Handlers may take a turn themselves.
  void wait() {
    if (!in_main_thread()) return turns_.mutex_.lock();
    while (!turns_.mutex_.try_lock_for(between_looks)) {
      const nb::gil_scoped_acquire locked;
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }
  Turns& turns_;
};

void Turns::run(bool from_main_thread, Monitor* monitor, const std::function<void()>& work) {
  std::optional<nb::python_error> raised;
  std::exception_ptr problem;
  {
    const nb::gil_scoped_release unlocked;
    const Turn turn(*this);
    Worker* const worker = from_main_thread ? take_worker() : nullptr;
    if (!worker) return work();
    const std::function<void()> job = [&] {
      try {
        work();
      } catch (...) {
        problem = std::current_exception();
      }
    };
    worker->start(job);
    while (!worker->done_within(between_looks)) {
      const nb::gil_scoped_acquire locked;
      if (PyErr_CheckSignals() == 0) continue;
      if (raised) {  // a second Ctrl-C, while the first one is under way
        PyErr_Clear();
        continue;
      }
      raised.emplace();
      if (monitor) monitor->interrupt();
    }
    worker->taken = false;
  }
  if (raised) throw nb::python_error(std::move(*raised));
  if (problem) std::rethrow_exception(problem);
}

}  // namespace krilu::python
