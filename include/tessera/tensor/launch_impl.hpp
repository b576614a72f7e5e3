#pragma once

#include <tessera/comm/launch/environment.hpp>
#include <tessera/tensor/launch.hpp>
#include <tessera/tensor/store_rendezvous.hpp>

#include <ATen/Parallel.h>
#include <c10/core/AutogradState.h>

#include <algorithm>
#include <stdexcept>
#include <thread>

namespace tessera {

namespace detail {

/// LibTorch's settings of the thread that launches: what workers change is restored, so no launch depends on an earlier
/// one.
class torch_settings {
 public:
  torch_settings() = default;
  torch_settings(const torch_settings&) = delete;
  torch_settings& operator=(const torch_settings&) = delete;
  ~torch_settings() {
    at::set_num_threads(threads_);
    c10::AutogradState::get_tls_state().set_multithreading_enabled(multithreaded_);
  }

  /// Gives this worker its share of the cores, the smallest that any has, and its backward to its own thread.
  void share(team_state& team) const {
    const bool here = team.carrier().host().traits().shares_memory;
    const int beside = here ? team.carrier().size() : std::max(1, read_environment().local_world);
    const int mine = std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / beside, 1, threads_);
    const std::vector<std::uint64_t> all = team.collect(static_cast<std::uint64_t>(mine), "sharing cores");
    at::set_num_threads(static_cast<int>(*std::min_element(all.begin(), all.end())));
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  }

 private:
  int threads_ = at::get_num_threads();
  bool multithreaded_ = c10::AutogradState::get_tls_state().get_multithreading_enabled();
};

}  // namespace detail

TESSERA_INLINE int launch(int argc, char** argv, const launch_options& options, const mesh_value& mesh,
                          const std::function<void(const team_handle&)>& program) {
  const detail::torch_settings settings;
  const caching_allocator::service memory(options);
  launch_options with = options;
  if (!with.meet) with.meet = engine::store_rendezvous;
  return run_workers(argc, argv, with, mesh, [&](const std::shared_ptr<engine::transport>& carrier) {
    const auto team = std::make_shared<team_state>(carrier, mesh);
    try {
      settings.share(*team);
      program(team);
      for (const std::function<void()>& end : carrier->exit_hooks) end();
    } catch (const c10::Error& e) {  // says what is wrong, without the addresses that it was thrown from
      throw std::runtime_error(e.what_without_backtrace());
    }
  });
}

}  // namespace tessera
