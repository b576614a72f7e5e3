#pragma once

#include <tessera/nn/parameter/state_dict.hpp>

#include <filesystem>
#include <initializer_list>
#include <utility>
#include <vector>

namespace tessera::nn {

/// Keys of a file and the network's own keys for the same parameters: `renamed{{"encoder.0.weight", "0.weight"}}`.
struct renamed {
  std::vector<std::pair<std::string, std::string>> keys;

  renamed() = default;
  renamed(std::initializer_list<std::pair<std::string, std::string>> foreign_and_own) : keys(foreign_and_own) {}
};

/// Reads a safetensors file, whoever wrote it; a checksum of ours is compared where its metadata names one, xxh64 or
/// the older fnv1a64. Whatever is malformed is an error that names the path, and costs memory in proportion to the
/// file's length.
state_dict read_state(const std::filesystem::path& path);

/// Writes a state dict as one file: eight bytes of length, a JSON header, raw tensors (the safetensors format), with a
/// checksum.
///
/// It takes the place of an older one when it is whole, and leaves nothing behind when it cannot be written.
void write_state(const std::filesystem::path& path, const state_dict& state);

}  // namespace tessera::nn

namespace tessera::detail {

void save(const team_handle& team, const keyed_state& kept, const std::filesystem::path& path,
          const nn::renamed& names);
void load(const team_handle& team, const keyed_state& kept, const std::filesystem::path& path,
          const nn::renamed& names);

}  // namespace tessera::detail

namespace tessera::nn {

/// Saves the parameters of a network: one file, serial keys or the foreign ones of a table, full tensors. All workers
/// call it with one path, and compare what they have; the first one writes, and holds one whole tensor at a time.
template <class Network>
void save(const Network& net, const std::filesystem::path& path, const renamed& names = {},
          call_site at = call_site::here()) {
  const team_handle team = tessera::detail::team_of(net);
  const engine::scoped_context now(*team, {.why = purpose::state, .name = "saving a network", .at = at});
  tessera::detail::save(team, tessera::detail::state_by_key(net), path, names);
}

/// Loads the parameters of a safetensors file, whatever partition or program wrote it; its keys are the network's but
/// for those in the table. All workers call it with one path, under which the first one reads; a bad file is one error
/// on all, and changes nothing. The first worker holds one whole tensor at a time, the others their parts.
template <class Network>
void load(Network& net, const std::filesystem::path& path, const renamed& names = {},
          call_site at = call_site::here()) {
  const team_handle team = tessera::detail::team_of(net);
  if (!team->inside()) return;
  const engine::scoped_context now(*team, {.why = purpose::state, .name = "loading a network", .at = at});
  tessera::detail::load(team, tessera::detail::state_by_key(net), path, names);
}

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/file/weights_file_impl.hpp>
#endif
