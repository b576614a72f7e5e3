#pragma once

#include <tessera/comm/team.hpp>
#include <tessera/nn/file/checkpoint_part.hpp>
#include <tessera/nn/file/kept_optimizer.hpp>
#include <tessera/nn/serial/model_parts.hpp>

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace tessera::nn {

/// How a checkpoint is saved.
struct checkpoint_options {
  int keep = 2;  ///< how many stay in the folder, the new one among them; 0 keeps all
  /// Writes by a thread of its own, of a copy of this worker's part. The checkpoint is whole behind the next `save`,
  /// `load` or `finish`, which throw what the thread met.
  bool background = false;
};

/// An entry of a checkpoint under a name: a network, an optimizer or a schedule of LibTorch, a number. It may also be
/// anything with `each_tensor(visit)`, or with `state()` and `load_state(dict)`.
class checkpoint_entry {
 public:
  template <class T>
  checkpoint_entry(std::string name, T& kept) : part_(part_of(std::move(name), kept)) {}
  /// A module of LibTorch that every worker of a team has. Its parameters are alike; of its buffers the first worker's
  /// count.
  checkpoint_entry(std::string name, const team_handle& team, torch::nn::Module& module)
      : part_(std::make_shared<engine::kept_module>(std::move(name), team, module)) {}
  template <Mesh M>
  checkpoint_entry(std::string name, const team<M>& team, torch::nn::Module& module)
      : checkpoint_entry(std::move(name), team.state(), module) {}

 private:
  friend class checkpoint;
  template <class T>
  static std::shared_ptr<engine::checkpoint_part> part_of(std::string name, T& kept) {
    if constexpr (std::is_arithmetic_v<T>) return std::make_shared<engine::kept_number<T>>(std::move(name), kept);
    else if constexpr (std::derived_from<T, torch::optim::Optimizer>)
      return std::make_shared<engine::kept_optimizer>(std::move(name), kept);
    else if constexpr (std::derived_from<T, torch::optim::LRScheduler>)
      return std::make_shared<engine::kept_schedule>(std::move(name), kept);
    else if constexpr (engine::shows_tensors<T> || engine::has_small_state<T>)
      return std::make_shared<engine::kept_state<T>>(std::move(name), kept);
    else if constexpr (engine::shows_values<T>)
      return std::make_shared<engine::kept_training<T>>(std::move(name), kept);
    else return std::make_shared<engine::kept_network<T>>(std::move(name), kept);
  }

  std::shared_ptr<engine::checkpoint_part> part_;
};

/// The state of a training run, saved by all workers at once and loaded on any other mesh, transport and number of
/// workers.
///
///   nn::checkpoint all{{"net", net}, {"optimizer", optimizer}, {"step", n}};
///   all.save(folder);
///   all.load(folder);
///
/// A checkpoint is a folder: a safetensors file a worker, in which each element lies once, and an index, which comes
/// last. A job that is killed at any byte leaves the one before as it was. All workers make it, save and load in one
/// order; what it names outlives it. A failure to save or load is one error on all of them, and changes nothing.
class checkpoint {
 public:
  checkpoint(std::initializer_list<checkpoint_entry> entries);
  ~checkpoint();
  checkpoint(checkpoint&&) noexcept;
  checkpoint& operator=(checkpoint&&) noexcept;

  /// Saves a new checkpoint to a folder, which is made, beside those that are there; then old ones go.
  void save(const std::filesystem::path& folder, const checkpoint_options& options = {},
            call_site at = call_site::here());
  /// Ends what is saved in the background.
  void finish(call_site at = call_site::here());

  /// Loads the newest checkpoint of a folder, or the one that is named itself. It may have more entries than are loaded
  /// here. Returns the bytes of tensors that this worker read. Σ over workers = Σ over tensors of elements · bytes,
  /// since one copy of each is read and sent to the others. Files are summed before, each by one worker.
  index_t load(const std::filesystem::path& folder, call_site at = call_site::here());

 private:
  struct running_save;

  team_handle team() const;
  void begin_saving(const team_handle& team, const std::filesystem::path& folder, const checkpoint_options& options);
  void end_saving(const team_handle& team);

  std::vector<std::shared_ptr<engine::checkpoint_part>> parts_;
  std::unique_ptr<running_save> running_;
};

/// Writes a network of a checkpoint as one safetensors file, as `nn::save` does, or as a file for each of its parts. No
/// team is needed, and one whole tensor is held at a time. One process calls it.
void export_checkpoint(const std::filesystem::path& folder, const std::string& entry, const std::filesystem::path& path,
                       const model_parts& parts = {});

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/file/checkpoint_impl.hpp>
#include <tessera/nn/file/checkpoint_load_impl.hpp>
#endif
