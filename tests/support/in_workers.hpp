#pragma once
// Runs a function on the workers of a world and hands back what each came to, so that one thread judges.

#include <tessera/comm/thread/in_process.hpp>
#include <tessera/comm/workers.hpp>

#include <functional>
#include <optional>
#include <thread>

namespace tessera::testing {

using namespace engine;

/// What the workers of one launch came to, by rank: a result, or the code and the text of an error.
template <class Result>
struct outcome {
  std::vector<std::optional<Result>> results;
  std::vector<std::string> codes;
  std::vector<std::string> texts;

  explicit outcome(int size)
      : results(static_cast<std::size_t>(size)),
        codes(static_cast<std::size_t>(size)),
        texts(static_cast<std::size_t>(size)) {}

  bool well() const {
    for (const auto& r : results)
      if (!r) return false;
    return true;
  }
  const Result& of(int rank) const { return *results[static_cast<std::size_t>(rank)]; }
  std::string errors() const {
    std::string all;
    for (std::size_t r = 0; r < texts.size(); ++r)
      if (!texts[r].empty()) all += fmt::format("worker {}: {}\n", r, texts[r]);
    return all;
  }

  /// Runs f and keeps what it gives or throws; what it throws goes on.
  template <class F>
  void keep(int rank, F&& f) {
    const auto r = static_cast<std::size_t>(rank);
    try {
      results[r] = f();
    } catch (const error& e) {
      codes[r] = e.code();
      texts[r] = e.what();
      throw;
    } catch (const std::exception& e) {
      codes[r] = "other";
      texts[r] = e.what();
      throw;
    }
  }
};

/// Runs f(0), …, f(size − 1) at once, each in a thread of its own.
using thread_runner = void(int size, const std::function<void(int)>& f);

inline void in_new_threads(int size, const std::function<void(int)>& f) {
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) threads.emplace_back([&f, r] { f(r); });
  for (auto& t : threads) t.join();
}

/// Workers that share memory.
class by_memory {
 public:
  static constexpr bool ends_alone = true;                    ///< a worker whose program ended waits for no other one
  static constexpr std::chrono::milliseconds too_late{2500};  ///< where the limit is a second

  explicit by_memory(int size, std::optional<bool> crowded = {}) : meeting_(std::make_shared<thread_rendezvous>(size)) {
    meeting_->crowded = crowded.value_or(meeting_->crowded);
  }
  std::shared_ptr<in_process> worker(int rank, std::chrono::seconds) {
    return std::make_shared<in_process>(meeting_, rank);
  }
  void abandon(in_process& worker, const error& why) { meeting_->abandon(worker.rank(), why); }

 private:
  std::shared_ptr<thread_rendezvous> meeting_;
};

/// Runs f(transport) in `size` threads of this process; whatever mesh it makes of them is known at run time. `crowded`
/// says whether workers wait as where they are more than cores.
template <class Meeting = by_memory, class F>
auto in_world(int size, F&& f, std::chrono::seconds limit = std::chrono::seconds{60}, std::optional<bool> crowded = {},
              thread_runner* run = in_new_threads) {
  outcome<decltype(f(std::declval<const std::shared_ptr<transport>&>()))> out(size);
  Meeting meeting(size, crowded);
  run(size, [&](int r) {
    const auto carrier = meeting.worker(r, limit);
    carrier->configure({.time_limit = limit});
    try {
      out.keep(r, [&] {
        auto result = f(carrier);
        carrier->leave();
        return result;
      });
    } catch (const error& e) {
      meeting.abandon(*carrier, e);
    } catch (const std::exception&) {
      meeting.abandon(*carrier, error(refusal{code::worker_lost, r, r}));
    }
  });
  return out;
}

/// Up to which share of a worker's outputs halos are overlapped, on all workers of a launch that runs.
inline void set_edges_apart(transport& carrier, double share) {
  transport_settings now = carrier.settings();
  now.edges_apart = share;
  carrier.configure(now);
}

/// What carries a worker's boxes, on top of what its host's memory is carried by.
using carried = std::function<std::shared_ptr<transport>(const std::shared_ptr<transport>& host)>;

inline std::shared_ptr<transport> by_itself(const std::shared_ptr<transport>& host) { return host; }

/// Options that keep the workers in this process, whatever launched it.
inline launch_options threads_only(std::chrono::seconds limit = std::chrono::seconds{60}) {
  launch_options o;
  o.transport = transport_choice::in_process;
  o.time_limit = limit;
  return o;
}

}  // namespace tessera::testing
