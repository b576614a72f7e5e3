#pragma once

#include <tessera/operation/memory/layer_memory.hpp>
#include <tessera/operation/program/program.hpp>

namespace tessera::detail {

/// The values of a program, its inputs and then the results of its nodes: who reads which, and in whose memory it lies.
template <int Nodes, int Values>
class value_lifetimes {
 protected:
  constexpr value_lifetimes(const auto& program, const layer_memory* of) : of_(of) {
    int values = 0;
    for (; values < program.inputs; ++values) root_[values] = values;
    for (int i = 0; i < Nodes; ++i) {
      const auto& node = program.nodes[i];
      first_[i] = values;
      owner_[i] = owner_of(program, i);
      for (int k = 0; k < of[i].operands.count; ++k) operand_[i][k] = index_of(program.operand(node, k));
      for (int k = 0; k < node.results; ++k, ++values)
        root_[values] = k == 0 && views(of[i]) ? root_[operand_[i][0]] : values;
      results_[i] = node.results;
    }
    first_[Nodes] = values;
    output_count_ = program.outputs;
    for (int i = 0; i < output_count_; ++i) outputs_[i] = index_of(program.output(i));
    for (int v = 0; v < values; ++v) last_[v] = v < program.inputs ? Nodes : -1;
    for (int i = 0; i < Nodes; ++i)
      for (int k = 0; k < of[i].operands.count; ++k)
        if (last_[operand_[i][k]] != Nodes) last_[operand_[i][k]] = i;
    for (int i = 0; i < output_count_; ++i) last_[outputs_[i]] = Nodes;
  }

  constexpr int index_of(const program_value& v) const { return v.node < 0 ? v.index : first_[v.node] + v.index; }
  constexpr bool first_reading(int i, int k) const {
    for (int before = 0; before < k; ++before)
      if (operand_[i][before] == operand_[i][k]) return false;
    return true;
  }
  // Calls visit(value) for each value that comes into nodes from others.
  template <class Visit>
  constexpr void each_input(const recomputed_nodes& part, const Visit& visit) const {
    for (int v = 0; v < first_[part.first]; ++v) {
      bool read = false;
      for (int i = part.first; i < part.end; ++i)
        for (int k = 0; k < of_[i].operands.count; ++k) read = read || operand_[i][k] == v;
      if (read) visit(v);
    }
  }

  static constexpr int most = 4;
  const layer_memory* of_ = nullptr;
  int first_[Nodes + 1]{};  // results of a node
  int results_[Nodes + 1]{};
  int operand_[Nodes + 1][most]{};
  int owner_[Nodes + 1]{};
  int root_[Values + 1]{};  // the value in whose memory it lies
  int last_[Values + 1]{};  // the node that reads it last; Nodes: it stays
  int outputs_[Values + 1]{};
  int output_count_ = 0;

 private:
  static constexpr bool views(const layer_memory& m) {
    return m.saves.view && !m.results[0].fresh && !m.operands[0].fresh;
  }
};

}  // namespace tessera::detail
