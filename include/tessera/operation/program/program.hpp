#pragma once

#include <tessera/meta/text.hpp>
#include <tessera/operation/plan/number.hpp>

#include <initializer_list>
#include <span>

namespace tessera {

namespace engine {

/// A value in a program: a result of a node, or one of the program's inputs (node −1).
struct program_value {
  int node = -1;
  int index = 0;
};

/// A part of a program with a number or a name of its own in its parameters' keys, as in the serial model.
struct program_scope {
  int parent = -1;  ///< −1: the program
  int number = 0;   ///< where it has no name
  text name;
  /// entered again it and those in it are the same scopes, so their nodes have the same parameters
  bool shared = false;
};

/// Nodes [first, end) of a program that run again for their backward: what comes in is all that stays of them. They
/// stand apart or in one another, the outer ones first.
struct recomputed_nodes {
  int first = 0;
  int end = 0;

  constexpr bool has(int node) const { return first <= node && node < end; }
};

/// A layer at its place in a program; `Record` is what is known of the layer.
template <class Record>
struct program_node {
  const Record* record = nullptr;
  int first = 0;  ///< of its operands in `program_view::values`
  int operands = 0;
  int results = 0;
  int scope = -1;
  int number = -1;                   ///< in its scope; −1: no layer of the serial model
  functions::engine::number scalar;  ///< by a function that holds one
};

/// A network as it is run: nodes in static single assignment, each behind those that it reads.
template <class Record>
struct program_view {
  const program_node<Record>* nodes = nullptr;
  int count = 0;
  const program_value* values = nullptr;  ///< operands of the nodes, then the program's outputs
  int first_output = 0;
  int outputs = 0;
  const program_scope* scopes = nullptr;
  int inputs = 0;
  const recomputed_nodes* recomputed = nullptr;
  int recomputed_count = 0;

  constexpr const program_node<Record>* begin() const { return nodes; }
  constexpr const program_node<Record>* end() const { return nodes + count; }
  constexpr const program_value& operand(const program_node<Record>& n, int i) const { return values[n.first + i]; }
  constexpr const program_value& output(int i) const { return values[first_output + i]; }
  /// How often a node runs forward once more in backward: as often as what is recomputed has it.
  constexpr int times_again(int node) const {
    int times = 0;
    for (int i = 0; i < recomputed_count; ++i) times += recomputed[i].has(node);
    return times;
  }
};

}  // namespace engine

namespace detail {

// How many values a program has: inputs, then the results of its nodes.
constexpr int values_of(const auto& program) {
  int n = program.inputs;
  for (const auto& node : program) n += node.results;
  return n;
}

// The first node whose parameters a node has: itself, or one that it shares them with.
constexpr int owner_of(const auto& program, int i) {
  const auto& node = program.nodes[i];
  for (int before = 0; before < i && node.scope >= 0 && program.scopes[node.scope].shared; ++before)
    if (program.nodes[before].scope == node.scope && program.nodes[before].number == node.number) return before;
  return i;
}

// Whether a node before takes the parameters that a node shares with it in the same layouts: what is held is there for
// both.
constexpr bool taken_before(const auto& program, int i) {
  for (int before = owner_of(program, i); before < i; ++before) {
    if (owner_of(program, before) != owner_of(program, i)) continue;
    const auto a = program.nodes[before].record->plan();
    const auto b = program.nodes[i].record->plan();
    bool alike = true;
    for (int k = 0; k < a.parameters() && k < b.parameters(); ++k) alike = alike && same(a.weight(k), b.weight(k));
    if (alike) return true;
  }
  return false;
}

/// Writes down the program of a module that is called with flows; without a place to write it counts.
template <class Record>
class recorder {
 public:
  constexpr recorder() = default;
  constexpr recorder(program_node<Record>* nodes, program_value* values, program_scope* scopes,
                     recomputed_nodes* recomputed)
      : nodes_(nodes), values_(values), scopes_(scopes), recomputed_(recomputed) {}

  int node_count = 0;
  int value_count = 0;
  int scope_count = 0;
  int recomputed_count = 0;
  int times_again = 0;  ///< how often the next node is computed again: as often as what is being recomputed has it
  refusal why;          ///< the first thing that only values said, and that does not fit

  /// Adds a node and says its number.
  constexpr int add(const Record* record, std::initializer_list<program_value> operands, int results, bool numbered) {
    return add(record, std::span(operands.begin(), operands.size()), results, numbered);
  }
  constexpr int add(const Record* record, std::span<const program_value> operands, int results, bool numbered) {
    if (nodes_ != nullptr)
      nodes_[node_count] = {
          record, value_count, static_cast<int>(operands.size()), results, scope_, numbered ? next_ : -1, scalar_};
    scalar_ = {};
    for (const program_value& x : operands) add(x);
    next_ += numbered;
    return node_count++;
  }
  constexpr void add(const program_value& x) {
    if (values_ != nullptr) values_[value_count] = x;
    ++value_count;
  }

  /// Writes on elsewhere, where as much was written already.
  constexpr void go_on_in(program_node<Record>* nodes, program_value* values, program_scope* scopes,
                          recomputed_nodes* recomputed) {
    nodes_ = nodes;
    values_ = values;
    scopes_ = scopes;
    recomputed_ = recomputed;
  }

  /// Notes what only a value says of the next node: a number is no constant where a function is called with it.
  constexpr void refuse(const refusal& of_values) { why = first_of(why, of_values); }

  /// The number that the function of the next node holds.
  constexpr void set_scalar(const functions::engine::number& n) { scalar_ = n; }

  /// Where the nodes that follow stand, and the number of the next of them.
  struct position {
    int scope;
    int next;
  };
  /// Enters a scope; says where to go back to. One without a name takes the next number.
  constexpr position enter(const text& name = {}, bool shared = false) {
    const position back{scope_, next_ + (name.size == 0)};
    const bool in_shared = scopes_ != nullptr && scope_ >= 0 && scopes_[scope_].shared;
    const program_scope wanted{scope_, name.size == 0 ? next_ : 0, name, shared || in_shared};
    int scope = scope_count;
    for (int i = 0; scopes_ != nullptr && wanted.shared && i < scope_count; ++i)
      if (scopes_[i].shared && scopes_[i].name == name &&
          (shared || (scopes_[i].parent == scope_ && scopes_[i].number == wanted.number)))
        scope = i;
    if (scope == scope_count) {
      if (scopes_ != nullptr) scopes_[scope] = wanted;
      ++scope_count;
    }
    scope_ = scope;
    next_ = 0;
    return back;
  }
  constexpr void leave(const position& back) {
    scope_ = back.scope;
    next_ = back.next;
  }
  /// Where the next node stands.
  constexpr position here() const { return {scope_, next_}; }

  /// Begins nodes that are recomputed; says which they are among those.
  constexpr int begin_recomputed() {
    if (recomputed_ != nullptr) recomputed_[recomputed_count] = {node_count, node_count};
    ++times_again;
    return recomputed_count++;
  }
  /// The next nodes belong to the last ones that are recomputed.
  constexpr int go_on_recomputed() {
    ++times_again;
    return recomputed_count - 1;
  }
  constexpr void end_recomputed(int which) {
    --times_again;
    if (recomputed_ != nullptr) recomputed_[which].end = node_count;
  }

 private:
  program_node<Record>* nodes_ = nullptr;
  program_value* values_ = nullptr;
  program_scope* scopes_ = nullptr;
  recomputed_nodes* recomputed_ = nullptr;
  int scope_ = -1;
  int next_ = 0;
  functions::engine::number scalar_;
};

/// A program as a constant.
template <class Record, int Nodes, int Values, int Scopes, int Recomputed>
struct stored_program {
  program_node<Record> nodes[Nodes + 1]{};
  program_value values[Values + 1]{};
  program_scope scopes[Scopes + 1]{};
  recomputed_nodes recomputed[Recomputed + 1]{};

  constexpr program_view<Record> view(int inputs, int outputs) const {
    return {nodes, Nodes, values, Values - outputs, outputs, scopes, inputs, recomputed, Recomputed};
  }
};

}  // namespace detail
}  // namespace tessera
