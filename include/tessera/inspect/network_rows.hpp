#pragma once

#include <tessera/inspect/lanes.hpp>
#include <tessera/inspect/text.hpp>
#include <tessera/nn/network/program_path.hpp>
#include <tessera/operation/network/multiply_adds.hpp>
#include <tessera/operation/network/peak_memory.hpp>

#include <array>

namespace tessera::engine {

/// A node of a network for given dynamic extents: its operands, the layouts of its results, its traffic, its
/// arithmetic, and a worker's memory meanwhile.
struct network_row {
  enum class kind : signed char { input, node, output };

  kind is = kind::node;
  std::string name;  ///< of the layer
  std::string path;  ///< in the keys of the serial model, or of the scope of what it has not
  int scope = -1;
  int number = -1;           ///< in its scope, or −1
  std::vector<int> reads;    ///< rows
  std::vector<layout> lies;  ///< results
  layer_plan plan;
  traffic_value traffic;
  arithmetic_value arithmetic;
  node_memory lives;
};

/// A network row by row, from its type alone: inputs, nodes, outputs.
template <class Network>
struct network_rows {
  std::vector<network_row> rows;
  traffic_value traffic;
  arithmetic_value arithmetic;
  memory_value memory;

  template <class... Bindings>
  explicit network_rows(const Bindings&... bindings) : traffic(tessera::traffic<Network>(bindings...)) {
    constexpr const auto& program = Network::program;
    const detail::bound_extents known = detail::extents_bound(bindings...);
    std::array<node_memory, program.count + 1> lives;
    memory = detail::memory_under<Network>(known, lives.data());
    add_inputs(typename Network::inputs{}, bindings...);
    const auto row_of = [&](const program_value& v) { return v.node < 0 ? v.index : program.inputs + v.node; };
    detail::each_plan<Network>(known, [&](int i, const layer_plan& p) {
      const auto& node = program.nodes[i];
      network_row row;
      row.name = node.record->name;
      row.path = detail::path_of(program, node);
      row.scope = node.scope;
      row.number = node.number;
      for (int k = 0; k < node.operands; ++k) row.reads.push_back(row_of(program.operand(node, k)));
      row.plan = p;
      for (int k = 0; k < row.plan.outputs(); ++k) row.lies.push_back(row.plan.output(k));
      row.traffic = traffic_of(row.plan, node.record->elements).again(program.times_again(i));
      if (detail::takes_tied(program, i)) row.traffic = detail::traffic_of_tied(program, i).instead_of(row.traffic);
      row.arithmetic = arithmetic_of(row.plan, node.record->elements).again(program.times_again(i));
      arithmetic += row.arithmetic;
      row.lives = lives[static_cast<std::size_t>(i)];
      rows.push_back(std::move(row));
    });
    for (int i = 0; i < program.outputs; ++i) {
      network_row row;
      row.is = network_row::kind::output;
      row.name = program.outputs == 1 ? "output" : fmt::format("output {}", i);
      row.reads = {row_of(program.output(i))};
      rows.push_back(std::move(row));
    }
  }

  lanes drawn() const {
    std::vector<std::vector<int>> reads;
    for (const network_row& r : rows) reads.push_back(r.reads);
    return lanes(reads);
  }
  /// The name by which other rows call a row: an input's name, or a node's number in the program.
  std::string reference(int row) const {
    const network_row& r = rows[static_cast<std::size_t>(row)];
    return r.is == network_row::kind::node ? fmt::format("{}", row - Network::program.inputs) : r.name;
  }
  /// The operands of a row, without a chain's next.
  std::string reads(const network_row& row) const {
    std::string s;
    for (const int from : row.reads) s += (s.empty() ? "" : ", ") + reference(from);
    return s;
  }
  /// Whether each row reads the one before it.
  bool is_chain() const {
    for (std::size_t r = 1; r < rows.size(); ++r)
      if (rows[r].reads != std::vector<int>{static_cast<int>(r) - 1}) return false;
    return true;
  }

 private:
  template <class... In, class... Bindings>
  void add_inputs(detail::type_list<In...>, const Bindings&... bindings) {
    const auto add = [&](const layout& x) {
      network_row row;
      row.is = network_row::kind::input;
      row.name = sizeof...(In) == 1 ? "input" : fmt::format("input {}", rows.size());
      row.lies = {detail::bound_all(x, bindings...)};
      rows.push_back(std::move(row));
    };
    (add(value_of<In>.layout), ...);
  }
};

}  // namespace tessera::engine
