#include "client/loadtest/run_load.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/loadtest/bottleneck.h"
#include "client/loadtest/call_slot.h"
#include "client/loadtest/closed_loop.h"
#include "client/loadtest/cpu_use.h"
#include "client/loadtest/open_loop.h"

namespace softlookup::loadtest {
namespace {

constexpr std::chrono::milliseconds kStartUp(20);  // Time for setting up, before the run begins.
// How long an interrupted run waits for its calls before it cancels them.
constexpr std::chrono::seconds kCancelAfter(1);
constexpr Clock::time_point kNever = Clock::time_point::max();
constexpr std::chrono::milliseconds kProgressInterval(500);

Clock::duration ToClock(absl::Duration duration) { return absl::ToChronoNanoseconds(duration); }

double SecondsBetween(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

// Returns the usual length of a timeline's intervals: a fiftieth of `duration`, in [0.1 s, 1 s].
Clock::duration PointLength(absl::Duration duration) {
  return ToClock(std::clamp(duration / 50, absl::Milliseconds(100), absl::Seconds(1)));
}

std::unique_ptr<LoadLoop> MakeLoop(const LoadOptions& options, const Traffic* traffic,
                                   CallSetup* setup) {
  if (options.rate.has_value()) return std::make_unique<OpenLoop>(options, traffic, setup);
  return std::make_unique<ClosedLoop>(options, traffic, setup);
}

// Makes each timeline point from the difference between one reading of the tally and the next.
class TimelineMaker {
 public:
  TimelineMaker(Clock::time_point begin, Tally tally)
      : begin_(begin), before_at_(begin), before_(std::move(tally)) {}

  TimelinePoint Next(Clock::time_point now, Tally tally) {
    const LatencyHistogram latency = tally.sum().latency.Since(before_.sum().latency);
    const LatencyHistogram lateness = tally.lateness.Since(before_.lateness);
    const TimelinePoint point{.begin_s = SecondsBetween(begin_, before_at_),
                              .end_s = SecondsBetween(begin_, now),
                              .ok = tally.all_ok - before_.all_ok,
                              .rejected = tally.all_rejected - before_.all_rejected,
                              .errors = tally.all_errors - before_.all_errors,
                              .overflow = tally.all_overflow - before_.all_overflow,
                              .in_flight = tally.all_sent - tally.all_finished,
                              .p50_s = latency.Percentile(50),
                              .p99_s = latency.Percentile(99),
                              .lateness_p99_s = lateness.Percentile(99)};
    before_at_ = now;
    before_ = std::move(tally);
    return point;
  }

 private:
  const Clock::time_point begin_;
  Clock::time_point before_at_;
  Tally before_;
};

// One run. A thread runs the load loop, and the caller's thread watches it.
class Run {
 public:
  Run(const LoadOptions& options, const LoadTarget& target)
      : options_(options),
        target_(target),
        begin_(Clock::now() + kStartUp),
        ramp_end_(begin_ + ToClock(options.ramp)),
        window_begin_(ramp_end_ + ToClock(options.warm_up)),
        window_end_(window_begin_ + ToClock(options.duration)) {
    setup_.connections = target.connections;
    setup_.recorder = &recorder_;
    setup_.evidence = target.evidence;
    setup_.timeout = options.timeout;
    setup_.retry.attempts_max = options.attempts_max;
    if (options.attempts_max > 1) setup_.writer_prefix = target.writer_prefix;
  }

  LoadResult Go() {
    recorder_.SetWindow(window_begin_, window_end_);
    if (target_.evidence != nullptr) {
      target_.evidence->Pace(window_begin_, window_end_ - window_begin_, target_.answers_to_keep);
    }
    const std::unique_ptr<LoadLoop> loop = MakeLoop(options_, target_.traffic, &setup_);
    std::thread thread([&] {
      loop->Run(begin_, window_end_);
      ended_.Notify();
    });
    result_.options = options_;
    WatchStart();
    WatchWindow();
    WatchDrain(loop.get());
    thread.join();
    result_.client.sender = loop->sender_use();
    result_.tally = recorder_.Read();
    result_.messages = recorder_.FirstMessages();
    if (result_.measured_s == 0) result_.timeline.clear();
    result_.invalid = InvalidReasons(result_);
    return std::move(result_);
  }

 private:
  bool Interrupted() const { return target_.interrupted != nullptr && *target_.interrupted; }

  // Waits until `time` and returns true. If the run is interrupted before `time`, stops the run and
  // returns false.
  bool WaitUntil(Clock::time_point time) {
    for (;;) {
      if (Interrupted()) {
        Interrupt();
        return false;
      }
      const Clock::time_point now = Clock::now();
      if (now >= time) return true;
      std::this_thread::sleep_until(std::min(time, now + kLookInterval));
    }
  }

  void Interrupt() {
    if (std::exchange(result_.interrupted, true)) return;
    recorder_.EndWindow(Clock::now());
    setup_.stop = true;
  }

  void WatchStart() {
    Tally before = recorder_.Read();
    Clock::time_point at = begin_;
    while (at < window_begin_) {
      const Clock::time_point next = std::min(at + kProgressInterval, window_begin_);
      if (!WaitUntil(next)) return;
      Tally tally = recorder_.Read();
      Progress progress = ProgressAt(next, tally);
      progress.rate = (tally.all_ok - before.all_ok) / SecondsBetween(at, next);
      Show(progress);
      before = std::move(tally);
      at = next;
    }
  }

  void WatchWindow() {
    // WaitUntil() returns a moment after window_begin_. So the CPU time counts from cpu_begin, not
    // from window_begin_.
    WaitUntil(window_begin_);
    result_.begin_time = absl::Now();
    const double cpu_before = ProcessCpuSeconds();
    const Clock::time_point cpu_begin = Clock::now();
    timeline_.emplace(window_begin_, recorder_.Read());
    const Clock::duration length = PointLength(options_.duration);
    for (Clock::time_point at = window_begin_; at < window_end_ && !result_.interrupted;) {
      at += length;
      if (at + length / 2 > window_end_) at = window_end_;
      WaitUntil(at);
      AddPoint();
    }
    const Clock::time_point now = Clock::now();
    const Clock::time_point end = std::min(now, window_end_);
    result_.measured_s = std::max(0.0, SecondsBetween(window_begin_, end));
    result_.client.cores = AvailableCores();
    result_.client.cores_used =
        (ProcessCpuSeconds() - cpu_before) / std::max(1e-9, SecondsBetween(cpu_begin, now));
  }

  void WatchDrain(LoadLoop* loop) {
    const Clock::duration length = PointLength(options_.duration);
    Clock::time_point next = Clock::now() + length;
    Clock::time_point cancel = result_.interrupted ? Clock::now() + kCancelAfter : kNever;
    while (!ended_.WaitForNotificationWithTimeout(absl::FromChrono(kLookInterval))) {
      if (Interrupted() && !result_.interrupted) {
        Interrupt();
        cancel = Clock::now() + kCancelAfter;
      }
      if (Clock::now() >= cancel) loop->CancelCalls();
      if (Clock::now() < next) continue;
      AddPoint();
      next += length;
    }
    const Tally tally = recorder_.Read();
    if (!result_.timeline.empty() && tally.all_finished > finished_) AddPoint();
  }

  void AddPoint() {
    const Clock::time_point now = Clock::now();
    Tally tally = recorder_.Read();
    finished_ = tally.all_finished;
    Progress progress = ProgressAt(now, tally);
    const TimelinePoint point = timeline_->Next(now, std::move(tally));
    result_.timeline.push_back(point);
    progress.rate = point.ok / std::max(1e-9, point.end_s - point.begin_s);
    progress.p50_s = point.p50_s;
    progress.p99_s = point.p99_s;
    if (now < next_progress_) return;
    next_progress_ = now + kProgressInterval;
    Show(progress);
  }

  Progress ProgressAt(Clock::time_point now, const Tally& tally) const {
    Progress progress;
    const auto in_phase = [&](Progress::Phase phase, Clock::time_point begin,
                              Clock::time_point end) {
      progress.phase = phase;
      progress.elapsed_s = SecondsBetween(begin, now);
      progress.phase_s = SecondsBetween(begin, end);
    };
    if (now <= ramp_end_) {
      in_phase(Progress::Phase::kRamp, begin_, ramp_end_);
    } else if (now <= window_begin_) {
      in_phase(Progress::Phase::kWarmUp, ramp_end_, window_begin_);
    } else if (now <= window_end_ && !result_.interrupted) {
      in_phase(Progress::Phase::kMeasuring, window_begin_, window_end_);
    } else {
      in_phase(Progress::Phase::kDraining, window_end_, window_end_);
    }
    progress.p50_s = progress.p99_s = LatencyHistogram().Percentile(50);
    progress.in_flight = tally.all_sent - tally.all_finished;
    progress.errors = tally.all_errors;
    progress.rejected = tally.all_rejected;
    progress.overflow = tally.all_overflow;
    return progress;
  }

  void Show(const Progress& progress) const {
    if (target_.progress) target_.progress(progress);
  }

  const LoadOptions& options_;
  const LoadTarget& target_;
  const Clock::time_point begin_;
  const Clock::time_point ramp_end_;
  const Clock::time_point window_begin_;
  const Clock::time_point window_end_;
  Recorder recorder_;
  CallSetup setup_;
  absl::Notification ended_;
  std::optional<TimelineMaker> timeline_;
  Clock::time_point next_progress_;
  std::uint64_t finished_ = 0;
  LoadResult result_;
};

}  // namespace

LoadResult RunLoad(const LoadOptions& options, const LoadTarget& target) {
  return Run(options, target).Go();
}

}  // namespace softlookup::loadtest
