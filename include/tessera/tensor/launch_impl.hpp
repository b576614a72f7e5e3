#pragma once

#include <tessera/comm/launch/environment.hpp>
#include <tessera/tensor/launch.hpp>
#include <tessera/tensor/store_rendezvous.hpp>

#include <ATen/Parallel.h>
#include <c10/core/AutogradState.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string_view>
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

/// The workers of a launch of threads: what `--threads N` or `--threads=N` says, else the program.
inline int threads_of(int argc, char** argv, int otherwise) {
  const std::string_view option = "--threads";
  const auto number = [](std::string_view said) {
    int n = 0;
    const auto [end, wrong] = std::from_chars(said.data(), said.data() + said.size(), n);
    if (wrong != std::errc{} || end != said.data() + said.size() || n < 1)
      throw error(refusal{code::workers_not_counted}, std::string(said));
    return n;
  };
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string_view given = argv[i];
    if (given == option) return number(i + 1 < argc ? argv[i + 1] : "");
    if (given.starts_with(option) && given[option.size()] == '=') return number(given.substr(option.size() + 1));
  }
  if (otherwise < 1) throw error(refusal{code::workers_not_counted}, fmt::format("{}", otherwise));
  return otherwise;
}

/// Runs a launch on a mesh that is there when its program runs.
inline int launch_on(int argc, char** argv, const launch_options& options, const engine::mesh_choice& choice,
                     const std::function<void(const team_handle&)>& program) {
  const torch_settings settings;
  const caching_allocator::service memory(options);
  launch_options with = options;
  if (!with.meet) with.meet = engine::store_rendezvous;
  mesh_value mesh;
  const auto chosen = [&](std::optional<int> processes) { return mesh = choice(processes); };
  return engine::start_workers(argc, argv, with, chosen, [&](const std::shared_ptr<engine::transport>& carrier) {
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

}  // namespace detail

TESSERA_INLINE int launch(int argc, char** argv, const launch_options& options, const mesh_value& mesh,
                          const std::function<void(const team_handle&)>& program) {
  return detail::launch_on(argc, argv, options, [&](std::optional<int>) { return mesh; }, program);
}

TESSERA_INLINE int launch(int argc, char** argv, const launch_options& options, const char* axis,
                          const std::function<void(const team_handle&)>& program) {
  const auto row = [&](std::optional<int> processes) {
    mesh_value m;
    m.axes.push({text(axis), processes ? *processes : detail::threads_of(argc, argv, options.threads), 1});
    return m;
  };
  return detail::launch_on(argc, argv, options, row, program);
}
TESSERA_INLINE int launch(int argc, char** argv, const char* axis,
                          const std::function<void(const team_handle&)>& program) {
  return launch(argc, argv, launch_options{}, axis, program);
}

}  // namespace tessera
