#pragma once

#include <tessera/comm/message/message_transport.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace tessera::engine {

/// While it lives, the worker waits in a call long enough to be asked, and asks, for whom.
class message_wait {
 public:
  using dependencies = std::function<detail::dependencies()>;

  message_wait(message_transport& carrier, std::uint64_t exchange, const exchange_call& call, dependencies of)
      : carrier_(carrier), call_(call) {
    until_ = detail::deadline_after(carrier_.settings().time_limit);
    next_question_ = clock::now() + message_transport::a_while;
    carrier_.needs_ = std::move(of);
    carrier_.detector_.enter(exchange, call);
  }
  message_wait(const message_wait&) = delete;
  message_wait& operator=(const message_wait&) = delete;
  ~message_wait() { carrier_.detector_.leave(); }

  /// Hears and asks, when it is time; throws what is wrong.
  void look() {
    const auto now = clock::now();
    if (now < next_look_) return;
    next_look_ = now + message_transport::a_moment;
    carrier_.listen();
    if (now > until_ && !last_) {  // those that only wait answer once more
      last_ = now + message_transport::for_answers;
      carrier_.detector_.ask();
    } else if (last_ && now > *last_) {
      const int stuck = carrier_.detector_.behind();
      carrier_.detector_.fail(
          refusal{code::time_limit, carrier_.rank(), stuck, carrier_.settings().time_limit.count()},
          worker_text(carrier_.rank(), text_of(call_.does)) + "; " + worker_text(stuck, in_no_call));
    } else if (!last_ && now > next_question_) {
      next_question_ = clock::time_point::max();
      carrier_.detector_.ask();
    }
  }

 private:
  using clock = message_transport::clock;

  message_transport& carrier_;
  const exchange_call& call_;
  clock::time_point until_;
  clock::time_point next_look_;
  clock::time_point next_question_;
  std::optional<clock::time_point> last_;
};

}  // namespace tessera::engine
