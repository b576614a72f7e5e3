#pragma once

#include <tessera/comm/exchange/transport.hpp>
#include <tessera/comm/wait/deadlock_detector.hpp>

#include <thread>

namespace tessera::engine {

/// A transport between workers that share no memory. Beside boxes, workers send whom they wait for, how they end, and
/// what stops them all.
class message_transport : public transport {
 public:
  int rank() const final { return rank_; }
  int size() const final { return size_; }
  bool ended() const final { return detector_.ended(); }
  std::optional<error> failure() const final { return detector_.failure(); }
  void listen() final {
    next_look_ = clock::now() + a_while;
    read();
    if (detector_.failure()) throw *detector_.failure();
  }

  /// This worker's program threw: all others stop with the same error. Whether this one is to say it: a lower worker
  /// that computes and hears nothing is not waited for any longer than some seconds. Where another one met it, whose
  /// program may have caught it, this one says it after some seconds more, each later than the lower ones.
  bool abandon(const error& why) {
    read();
    detector_.stop(why);
    if (!says_itself_) says_itself_ = clock::now() + for_others + std::min(rank(), 20) * 2 * a_while;
    for (const auto until = clock::now() + for_answers; !detector_.settled() && clock::now() < until; read())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return !detector_.failed_elsewhere() || (clock::now() > *says_itself_ && detector_.say());
  }
  /// Whether another worker has said the error which this one heard of, or has stopped with it.
  bool is_reported() const { return detector_.is_reported(); }

  /// Tells all others that this worker's program ended, and waits until they have ended too: one that stays silent is
  /// stuck.
  void leave() {
    detector_.end();
    int watched = -1;
    std::uint64_t heard = 0;
    auto until = detail::deadline_after(settings().time_limit);
    auto next_hail = clock::now();
    for (int other; (other = detector_.still_runs()) >= 0; listen()) {
      if (other != watched || detector_.heard_of(other) != heard) {
        watched = other;
        heard = detector_.heard_of(other);
        until = detail::deadline_after(settings().time_limit);
      }
      if (clock::now() > until)
        detector_.fail(refusal{code::time_limit, rank(), other, settings().time_limit.count()},
                       worker_text(rank(), has_ended) + "; " + worker_text(other, in_no_call));
      if (clock::now() > next_hail) {
        next_hail = clock::now() + a_while;
        detector_.hail(other);
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

 protected:
  using clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds a_moment{1};   // between two looks for messages
  static constexpr std::chrono::milliseconds a_while{200};  // after which a worker that waits asks
  // of all that hear: who gives none computes, or is stuck
  static constexpr std::chrono::milliseconds for_answers{2000};
  // to say what they met, and end all: longer than for answers
  static constexpr std::chrono::milliseconds for_others{3000};

  message_transport(int rank, int size)
      : rank_(rank),
        detector_(
            rank, size, [this](int to, const detail::wait_message& m) { tell(to, m); }, [this] { return needs_(); },
            [this](std::uint64_t exchange, std::uint64_t call) { return missing(exchange, call); }),
        size_(size) {}

  /// A worker that was stopped begins no call and ends none; the launch is told that its program goes on.
  void refuse_if_stopped(const call_context& does) {
    if (!stopped_) return;
    detector_.stop(error(refusal{code::call_given_up, rank()}, worker_text(rank(), text_of(does))));
    if (went_on) went_on(*detector_.failure());
    throw *detector_.failure();
  }

  /// Sends a message without waiting.
  virtual void tell(int to, const detail::wait_message& message) = 0;
  /// Hears the messages that are here.
  virtual void read() = 0;
  /// Those whose terms this worker lacks of a call that it began, where who gave one waits until it is taken.
  virtual detail::dependencies missing(std::uint64_t, std::uint64_t) const { return {}; }

  int rank_;
  detail::deadlock_detector detector_;
  clock::time_point next_look_;
  bool stopped_ = false;  // it gave up a call, and begins nothing more

 private:
  friend class message_wait;

  int size_;
  std::optional<clock::time_point> says_itself_;
  std::function<detail::dependencies()> needs_;  // of the call that this worker waits in
};

}  // namespace tessera::engine
