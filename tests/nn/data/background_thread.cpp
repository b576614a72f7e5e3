#include "tests/support/tensors.hpp"

#include <tessera/nn/data/background_thread.hpp>

#include <algorithm>
#include <atomic>
#include <stdexcept>

// A thread that does what it is given, in order.

namespace tessera::testing {
namespace {

using nn::engine::background_thread;

TEST_CASE("a thread does what it is given in order, and what throws is thrown where it is taken", "[runtime]") {
  background_thread<int> thread;
  std::vector<int> done;  // by that thread alone until all is taken
  std::vector<std::future<int>> all;
  for (int i = 0; i < 100; ++i)
    all.push_back(thread.begin([&done, i] {
      done.push_back(i);
      if (i == 40) throw std::runtime_error("forty");
      return i * i;
    }));
  for (int i = 0; i < 100; ++i) {
    if (i == 40) CHECK_THROWS_AS(all[40].get(), std::runtime_error);
    else CHECK(all[static_cast<std::size_t>(i)].get() == i * i);
  }
  CHECK((done.size() == 100 && std::is_sorted(done.begin(), done.end())));
}

TEST_CASE("what a thread has not begun when it forgets or ends it never does", "[runtime]") {
  std::atomic<int> done{0};
  std::promise<void> goes_on;
  std::future<int> first;
  {
    background_thread<int> thread;
    std::promise<void> begun;
    first = thread.begin([&, go = goes_on.get_future().share()] {
      begun.set_value();
      go.wait();
      return ++done;
    });
    begun.get_future().wait();
    std::future<int> forgotten = thread.begin([&] { return ++done; });
    thread.forget();
    CHECK_THROWS_AS(forgotten.get(), std::future_error);
    const std::future<int> left = thread.begin([&] { return ++done; });
    std::thread later([&] { goes_on.set_value(); });
    later.join();
    first.wait();
  }
  CHECK((first.get() == 1 && done <= 2));
}

}  // namespace
}  // namespace tessera::testing
