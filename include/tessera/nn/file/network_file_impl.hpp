#pragma once

#include <tessera/nn/file/network_file.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace tessera::detail {

/// The words of a list, or a word alone.
inline std::vector<std::string> word_list(const file::json_cursor& here) {
  if (here.value().is_string()) return {here.word()};
  std::vector<std::string> all;
  for (std::size_t i = 0; i < here.list().size(); ++i) all.push_back(here.item(i).word());
  return all;
}

/// A network in a file while it is read.
class network_reader {
 public:
  network_reader(nn::program& p, const file::json_cursor& all, const mesh_value& mesh, const nn::layer_table& table,
                 file::lists& keep)
      : mesh_(mesh),
        table_(table),
        keep_(keep),
        nodes_(all.only({"inputs", "stages", "nodes", "outputs"}).at("nodes").list()) {
    const file::json_cursor inputs = all.at("inputs").list();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const file::json_cursor x = inputs.item(i).only({"name", "shape", "element", "dims", "meaning"});
      name(x, p.input(file::read_tensor(x, mesh, keep), x.at("name").word()));
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const file::json_cursor node = nodes_.item(i);
      const std::string named = node.at("name").word();
      if (values_.count(named) > 0 || !places_.emplace(named, i).second)
        node.fault(fmt::format("is a second \"{}\"", named));
    }
    if (all.has("stages")) add_in_stages(p, all.at("stages"));
    else add_all();
    const file::json_cursor outputs = all.at("outputs");
    for (const std::string& y : word_list(outputs)) p.output(value(y, outputs), y);
  }

 private:
  void add_all() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) add(nodes_.item(i).at("name").word(), nodes_.item(i));
  }
  // {"axis", "by": "count", "parameters", "memory", "time", "weights" or "sizes", "given", "rows", "chunks", "turns",
  // "through"}
  void add_in_stages(nn::program& p, const file::json_cursor& said) {
    using pipeline::share;
    const file::json_cursor here = said.only({"axis", "by", "given", "rows", "chunks", "turns", "through"});
    nn::stage_options how;
    const std::string by = here.has("by") ? here.at("by").word() : "count";
    const std::pair<const char*, share> words[]{{"count", share::count},     {"parameters", share::parameters},
                                                {"memory", share::memory},   {"time", share::time},
                                                {"weights", share::weights}, {"sizes", share::sizes}};
    const auto* const found =
        std::find_if(std::begin(words), std::end(words), [&](const auto& w) { return by == w.first; });
    if (found == std::end(words)) here.at("by").fault("is none of count, parameters, memory, time, weights and sizes");
    how.by = found->second;
    if (here.has("given")) {
      const file::json_cursor given = here.at("given").list();
      for (std::size_t i = 0; i < given.size(); ++i) how.given.push_back(given.item(i).number(0, INT32_MAX));
    }
    if (here.has("rows")) how.rows = here.at("rows").number(1, INT32_MAX);
    if (here.has("chunks")) how.chunks = static_cast<int>(here.at("chunks").number(1, INT16_MAX));
    how.turns = here.has("turns") && here.at("turns").flag();
    if (here.has("through")) how.through = here.at("through").word();
    const std::string axis = here.at("axis").word();
    const auto values = values_;
    p.in_stages(text(axis.data(), static_cast<int>(axis.size())), how.assigned(), mesh_, [&] {
      values_ = values;
      begun_.clear();
      added_.clear();
      add_all();
    });
  }

  void name(const file::json_cursor& here, const nn::dynamic_flow& x) {
    if (!values_.emplace(here.at("name").word(), x).second)
      here.fault(fmt::format("is a second \"{}\"", here.at("name").word()));
  }

  // What a name stands for; of a node with several results "node.0" is the first.
  nn::dynamic_flow value(const std::string& wanted, const file::json_cursor& by) {
    if (values_.count(wanted) == 0) add(places_.count(wanted) > 0 ? wanted : wanted.substr(0, wanted.rfind('.')), by);
    const auto known = values_.find(wanted);
    if (known == values_.end()) throw error(refusal{code::program_value_unknown}, by.path() + ": " + wanted);
    return known->second;
  }

  // Adds a node behind those that it reads.
  void add(const std::string& named, const file::json_cursor& by) {
    const auto found = places_.find(named);
    if (found == places_.end()) throw error(refusal{code::program_value_unknown}, by.path() + ": " + named);
    if (added_.count(named) > 0) return;
    if (!begun_.insert(named).second) throw error(refusal{code::program_cycle}, by.path() + ": " + named);
    const file::json_cursor node = nodes_.item(found->second);
    std::vector<nn::dynamic_flow> operands;
    for (const std::string& x : word_list(node.at("of"))) operands.push_back(value(x, node));
    const std::vector<nn::dynamic_flow> y = table_.add(nn::node_options(node, mesh_, keep_), operands);
    added_.insert(named);
    if (y.size() == 1) values_.emplace(named, y[0]);
    for (std::size_t i = 0; i < y.size() && y.size() > 1; ++i) values_.emplace(fmt::format("{}.{}", named, i), y[i]);
  }

  const mesh_value& mesh_;
  const nn::layer_table& table_;
  file::lists& keep_;
  file::json_cursor nodes_;
  std::map<std::string, nn::dynamic_flow> values_;
  std::map<std::string, std::size_t> places_;
  std::set<std::string> begun_, added_;
};

}  // namespace tessera::detail

namespace tessera::nn {

TESSERA_INLINE void read_network(program& p, const std::string& text, const mesh_value& mesh, const std::string& from,
                                 const layer_table& table) {
  engine::file::json all;
  try {
    all = engine::file::json::parse(text);
  } catch (const engine::file::json::parse_error& e) {
    throw error(refusal{code::file_misread}, from + ": is not JSON: " + e.what());
  }
  const auto keep = std::make_shared<engine::file::lists>();
  program trial;  // what is refused half way leaves nothing behind
  tessera::detail::network_reader(trial, engine::file::json_cursor(all, from), mesh, table, *keep);
  p.keep(keep);
  tessera::detail::network_reader(p, engine::file::json_cursor(all, from), mesh, table, *keep);
}

TESSERA_INLINE void load_network(program& p, const std::filesystem::path& path, const mesh_value& mesh,
                                 const layer_table& table) {
  std::ifstream in(path);
  std::ostringstream all;
  if (!in || !(all << in.rdbuf())) throw error(refusal{code::file_missing}, path.string());
  read_network(p, all.str(), mesh, path.filename().string(), table);
}

}  // namespace tessera::nn
