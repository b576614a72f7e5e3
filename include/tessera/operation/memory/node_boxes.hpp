#pragma once

#include <tessera/operation/memory/ledger.hpp>
#include <tessera/operation/memory/value_lifetimes.hpp>

namespace tessera::detail {

/// What a node of a program has at once while it computes, and what stays of it for its backward.
template <int Nodes, int Values>
class node_boxes : protected memory_ledger<Values>, protected value_lifetimes<Nodes, Values> {
 protected:
  using ledger = memory_ledger<Values>;
  using ledger::add, ledger::remove, ledger::reach, ledger::hold, ledger::let_go, ledger::drop_gradient, ledger::arrive;
  using ledger::count_, ledger::peak_, ledger::now_, ledger::bytes_, ledger::stored_, ledger::holders_;
  using ledger::gradient_, ledger::gradient_holders_, ledger::gradient_bytes_;
  using values = value_lifetimes<Nodes, Values>;
  using values::first_reading, values::each_input;
  using values::of_, values::nodes_, values::first_, values::results_, values::operand_, values::owner_, values::root_,
      values::last_, values::outputs_, values::output_count_;

  constexpr node_boxes(const auto& program, const layer_memory* of) : values(program, of) {
    this->open(first_[nodes_]);
    make_room(nodes_, own_);
  }

  // What a layer has at once while it computes.
  constexpr void compute(const layer_memory& now, bool kept) {
    index_t taken = 0;
    const auto count = [&](const change_memory& w) {
      if (!w.fresh) return;
      reach(capped_sum(taken, capped_sum(w.behind, w.between)));
      taken = capped_sum(taken, w.behind);
    };
    for (const change_memory& x : now.operands) count(x);
    for (const change_memory& w : now.parameters) count(w);
    index_t given = kept ? capped_sum(now.beside, now.remembered) : now.beside;
    index_t leaving = 0;
    for (const change_memory& y : now.results) {
      if (!now.saves.view) given = capped_sum(given, larger(larger(y.before, y.whole), y.room));
      if (y.fresh) leaving = larger(leaving, capped_sum(y.behind, y.between));
    }
    taken = capped_sum(taken, given);
    reach(capped_sum(taken, larger(leaving, now.scratch)));
  }

  // What stays for the backward of a node: values that are there anyway, and what was made for it alone.
  constexpr void save(int i) {
    const layer_memory& now = of_[i];
    own_[i] = capped_sum(now.beside, now.remembered);
    for (int k = 0; k < now.operands.count; ++k) {
      if ((now.saves.operands >> k & 1u) == 0) continue;
      if (now.operands[k].fresh) own_[i] = capped_sum(own_[i], now.operands[k].behind);
      else hold(root_[operand_[i].of[k]]);
    }
    for (int k = 0; k < now.parameters.count; ++k)
      if ((now.saves.weights >> k & 1u) != 0 && now.parameters[k].fresh && !now.parameters[k].released)
        own_[i] = capped_sum(own_[i], now.parameters[k].behind);
    for (int k = 0; k < results_[i]; ++k) {
      if ((now.saves.results >> k & 1u) == 0) continue;
      if (now.results[k].fresh) own_[i] = capped_sum(own_[i], now.results[k].before);
      else hold(root_[first_[i] + k]);
    }
    add(own_[i]);
  }
  constexpr void release(int i) {
    const layer_memory& now = of_[i];
    for (int k = 0; k < now.operands.count; ++k)
      if ((now.saves.operands >> k & 1u) != 0 && !now.operands[k].fresh) let_go(root_[operand_[i].of[k]]);
    for (int k = 0; k < results_[i]; ++k)
      if ((now.saves.results >> k & 1u) != 0 && !now.results[k].fresh) let_go(root_[first_[i] + k]);
    remove(own_[i]);
  }

 private:
  numbered<index_t, Nodes> own_{};  // the bytes made for a node's backward alone
};

}  // namespace tessera::detail
