#pragma once

#include <tessera/operation/memory/layer_memory.hpp>
#include <tessera/operation/memory/numbered.hpp>
#include <tessera/operation/program/program.hpp>

namespace tessera::detail {

/// The values of a program, its inputs and then the results of its nodes: who reads which, and in whose memory it lies.
template <int Nodes, int Values>
class value_lifetimes {
 protected:
  struct operands {
    int of[4];
  };

  constexpr value_lifetimes(const auto& program, const layer_memory* of) : of_(of), nodes_(program.count) {
    const int all = values_of(program);
    make_room(nodes_, first_, results_, operand_, owner_);
    make_room(all, root_, last_, outputs_);
    int values = 0;
    for (; values < program.inputs; ++values) root_[values] = values;
    for (int i = 0; i < nodes_; ++i) {
      const auto& node = program.nodes[i];
      first_[i] = values;
      owner_[i] = owner_of(program, i);
      for (int k = 0; k < of[i].operands.count; ++k) operand_[i].of[k] = index_of(program.operand(node, k));
      for (int k = 0; k < node.results; ++k, ++values)
        root_[values] = k == 0 && views(of[i]) ? root_[operand_[i].of[0]] : values;
      results_[i] = node.results;
    }
    first_[nodes_] = values;
    output_count_ = program.outputs;
    for (int i = 0; i < output_count_; ++i) outputs_[i] = index_of(program.output(i));
    for (int v = 0; v < values; ++v) last_[v] = v < program.inputs ? nodes_ : -1;
    for (int i = 0; i < nodes_; ++i)
      for (int k = 0; k < of[i].operands.count; ++k)
        if (last_[operand_[i].of[k]] != nodes_) last_[operand_[i].of[k]] = i;
    for (int i = 0; i < output_count_; ++i) last_[outputs_[i]] = nodes_;
  }

  constexpr int index_of(const program_value& v) const { return v.node < 0 ? v.index : first_[v.node] + v.index; }
  constexpr bool first_reading(int i, int k) const {
    for (int before = 0; before < k; ++before)
      if (operand_[i].of[before] == operand_[i].of[k]) return false;
    return true;
  }
  // Calls visit(value) for each value that comes into nodes from others.
  template <class Visit>
  constexpr void each_input(const recomputed_nodes& part, const Visit& visit) const {
    for (int v = 0; v < first_[part.first]; ++v) {
      bool read = false;
      for (int i = part.first; i < part.end; ++i)
        for (int k = 0; k < of_[i].operands.count; ++k) read = read || operand_[i].of[k] == v;
      if (read) visit(v);
    }
  }

  const layer_memory* of_ = nullptr;
  int nodes_ = 0;
  numbered<int, Nodes> first_{};  // results of a node
  numbered<int, Nodes> results_{};
  numbered<operands, Nodes> operand_{};
  numbered<int, Nodes> owner_{};
  numbered<int, Values> root_{};  // the value in whose memory it lies
  numbered<int, Values> last_{};  // the node that reads it last; their count: it stays
  numbered<int, Values> outputs_{};
  int output_count_ = 0;

 private:
  static constexpr bool views(const layer_memory& m) {
    return m.saves.view && !m.results[0].fresh && !m.operands[0].fresh;
  }
};

}  // namespace tessera::detail
