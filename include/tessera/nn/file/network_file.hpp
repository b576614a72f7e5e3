#pragma once

#include <tessera/nn/file/layer_table.hpp>

#include <filesystem>

namespace tessera::nn {

/// Adds the network of a JSON text to a program, over a mesh whose axes it names; `from` is what messages call the
/// text.
///
/// {"inputs": [{"name", "shape", "element", "dims", "meaning"}], "nodes": [{"name", "of", "layer" or "function",
/// options}], "outputs": [names]}. An extent that is a word is dynamic; "dims" and "meaning" give the partition as in
/// plan files. Nodes may stand in any order; "node.0" is the first result of a node with several. A text that is no
/// network is refused at the place of the error, and the program is unchanged.
void read_network(program& p, const std::string& text, const mesh_value& mesh, const std::string& from,
                  const layer_table& table = {});

/// The same of a file.
void load_network(program& p, const std::filesystem::path& path, const mesh_value& mesh, const layer_table& table = {});

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/file/network_file_impl.hpp>
#endif
