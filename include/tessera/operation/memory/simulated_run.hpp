#pragma once

#include <tessera/operation/memory/node_boxes.hpp>
#include <tessera/operation/memory/node_memory.hpp>

namespace tessera::detail {

/// Runs a program in numbers, as its executor and autograd run it: what each step holds at once.
template <int Nodes, int Values>
class simulated_run : node_boxes<Nodes, Values> {
 public:
  constexpr simulated_run(const auto& program, const layer_memory* of, const index_t* inputs)
      : boxes(program, of), recomputed_(program.recomputed), recomputed_count_(program.recomputed_count) {
    make_room(nodes_, at_, collected_, needs_);
    make_room(count_, graded_);
    for (int v = 0; v < program.inputs; ++v) {
      bytes_[v] = stored_[v] = inputs[v];
      hold(v);
    }
    for (int i = 0; i < nodes_; ++i)
      for (int k = 0; k < results_[i]; ++k) {
        const change_memory& y = of[i].results[k];
        bytes_[first_[i] + k] = y.behind;
        stored_[first_[i] + k] = y.fresh ? y.behind : larger(larger(y.behind, y.before), larger(y.whole, y.room));
      }
  }

  /// The memory alive while a node computes, as far as the run went.
  constexpr const node_memory& at(int node) const { return at_[node]; }

  /// The peak of forward; where `saves`, what backward reads is kept.
  constexpr index_t forward(bool saves) {
    run(0, nodes_, 0, saves);
    now_ = &peak_;
    return peak_;
  }

  /// The peak of forward and of the backward behind it. Inputs have no gradients but those that `graded` says, if any.
  constexpr index_t training(const bool* graded = nullptr) {
    for (int v = 0; v < first_[0] && graded != nullptr; ++v) graded_[v] = graded[v];
    forward(true);
    for (int i = 0; i < nodes_; ++i)
      for (int k = 0; k < results_[i]; ++k)
        if (const int v = first_[i] + k; last_[v] < 0) let_go(root_[v]);  // what nobody reads stays as long as forward
    for (int i = 0; i < output_count_; ++i) {
      const int v = outputs_[i];
      if (!graded_[v] || gradient_[v] == count_) continue;
      add(bytes_[v]);
      gradient_[v] = count_;  // the caller holds it
    }
    back_through(0, nodes_, 0);
    now_ = &peak_;
    return peak_;
  }

 private:
  using boxes = node_boxes<Nodes, Values>;
  using boxes::add, boxes::remove, boxes::reach, boxes::hold, boxes::let_go, boxes::drop_gradient, boxes::arrive;
  using boxes::compute, boxes::save, boxes::release;
  using boxes::count_, boxes::peak_, boxes::now_, boxes::bytes_, boxes::stored_, boxes::holders_;
  using boxes::first_reading, boxes::each_input;
  using boxes::gradient_, boxes::gradient_holders_, boxes::gradient_bytes_;
  using boxes::of_, boxes::nodes_, boxes::first_, boxes::results_, boxes::operand_, boxes::owner_, boxes::root_,
      boxes::last_, boxes::outputs_, boxes::output_count_;

  // Runs nodes forward. What is recomputed, from `next` on, keeps what comes in where others keep what their backward
  // reads.
  constexpr void run(int first, int end, int next, bool saves) {
    for (int i = first; i < end;) {
      while (next < recomputed_count_ && recomputed_[next].first <= i &&
             !(recomputed_[next].first == i && recomputed_[next].has(i)))
        ++next;
      if (saves && next < recomputed_count_ && recomputed_[next].first == i) {
        const recomputed_nodes& part = recomputed_[next];
        each_input(part, [&](int v) { hold(root_[v]); });
        run(i, part.end, recomputed_count_, false);
        if (needs(part)) add(buffers_of(part));
        else each_input(part, [&](int v) { let_go(root_[v]); });
        i = part.end;
      } else {
        compute(i++, saves);
      }
    }
  }

  // One node forward: in backward where it is recomputed, and then what comes from elsewhere stays.
  constexpr void compute(int i, bool saves) {
    const layer_memory& now = of_[i];
    now_ = again_from_ > 0 ? &at_[i].backward : &at_[i].forward;
    for (int k = 0; k < now.operands.count; ++k) needs_[i] = needs_[i] || graded_[operand_[i].of[k]];
    for (const change_memory& w : now.parameters) needs_[i] = needs_[i] || !w.frozen;
    needs_[i] = needs_[i] && now.differentiable;
    const bool kept = saves && needs_[i];
    compute(now, kept);
    for (int k = 0; k < results_[i]; ++k) {
      hold(root_[first_[i] + k]);
      graded_[first_[i] + k] = needs_[i];
    }
    if (kept) save(i);
    for (int k = 0; k < now.operands.count; ++k)
      if (const int v = operand_[i].of[k]; last_[v] == i && v >= again_from_ && first_reading(i, k)) let_go(root_[v]);
  }

  constexpr bool needs(const recomputed_nodes& part) const {
    bool any = false;
    for (int i = part.first; i < part.end; ++i) any = any || needs_[i];
    return any;
  }
  constexpr index_t buffers_of(const recomputed_nodes& part) const {
    index_t bytes = 0;
    for (int i = part.first; i < part.end; ++i) bytes = capped_sum(bytes, of_[i].buffers);
    return bytes;
  }
  // The backward of nodes, the last one first.
  constexpr void back_through(int first, int end, int next) {
    for (int i = end; i-- > first;) {
      int part = next;
      while (part < recomputed_count_ && !recomputed_[part].has(i)) ++part;
      if (part < recomputed_count_) {
        back_again(part);
        i = recomputed_[part].first;
      } else if (needs_[i]) {
        back(i);
      }
    }
  }
  // The backward of what is recomputed: forward once more beside what still lives of the first time, then back. Its
  // results' gradients stay as long, and those of parameters go on when all are there.
  constexpr void back_again(int which) {
    const recomputed_nodes& part = recomputed_[which];
    if (!needs(part)) return;
    const int from = again_from_;
    const index_t others = awaited_;
    numbered<int, Values> held{};
    numbered<int, Values> given{};  // the gradients that it begins with
    make_room(count_, held, given);
    again_from_ = first_[part.first];
    awaited_ = 0;
    for (int v = again_from_; v < first_[part.end]; ++v) {
      held[v] = holders_[v];
      holders_[v] = 0;
    }
    const index_t buffers = buffers_of(part);
    add(buffers);
    run(part.first, part.end, which + 1, true);
    for (int v = again_from_; v < first_[part.end]; ++v) {
      if (last_[v] < 0 || last_[v] >= part.end) let_go(root_[v]);
      given[v] = gradient_[v];
      if (given[v] >= 0 && given[v] != count_) ++gradient_holders_[given[v]];
    }
    back_through(part.first, part.end, which + 1);
    for (int v = again_from_; v < first_[part.end]; ++v) {
      holders_[v] = held[v];
      if (given[v] >= 0 && given[v] != count_ && --gradient_holders_[given[v]] == 0) remove(gradient_bytes_[given[v]]);
    }
    remove(capped_sum(awaited_, capped_product(2, buffers)));
    again_from_ = from;
    awaited_ = others;
    each_input(part, [&](int v) { let_go(root_[v]); });
  }

  constexpr void back(int i) {
    const layer_memory& now = of_[i];
    now_ = &at_[i].backward;
    bool reached = false;
    index_t raw = 0;
    for (int k = 0; k < results_[i]; ++k) {
      const int v = first_[i] + k;
      const change_memory& y = now.results[k];
      if (gradient_[v] < 0) continue;
      reached = true;
      if (y.changes) {
        reach(capped_sum(y.before, y.returning));
        add(y.before);
        raw = capped_sum(raw, y.before);
        drop_gradient(v);
      }
      if (y.whole == 0) continue;
      reach(y.whole);
      if (y.changes) remove(y.before);
      else drop_gradient(v);
      reach(capped_sum(y.padding, y.whole));
      add(y.whole);
      raw = capped_sum(y.changes ? capped_difference(raw, y.before) : raw, y.whole);
    }
    if (!reached) return;
    index_t again = 0;  // of parameters that were released
    for (const change_memory& w : now.parameters) {
      if (!w.released) continue;
      reach(capped_sum(w.behind, w.between));
      add(w.behind);
      again = capped_sum(again, w.behind);
    }
    const auto graded = [&](int k) { return graded_[operand_[i].of[k]]; };
    const auto passes = [&](int k) {  // the gradient of a view of less is padded
      const bool as_large = !now.saves.view || now.operands[k].behind == now.results[0].before;
      return (now.saves.passes >> k & 1u) != 0 && as_large;
    };
    bool any_passes = false;
    index_t made = 0;
    for (int k = 0; k < now.operands.count; ++k) {
      if (graded(k) && !passes(k)) made = capped_sum(made, now.operands[k].behind);
      any_passes = any_passes || (graded(k) && passes(k));
    }
    index_t weights = 0;
    for (const change_memory& w : now.parameters)
      if (!w.frozen) weights = capped_sum(weights, w.behind);
    add(capped_sum(made, weights));
    reach(now.returning);
    const int passed = any_passes && raw == 0 ? gradient_[first_[i]] : -1;
    if (passed >= 0 && passed != count_) ++gradient_holders_[passed];
    for (int k = 0; k < results_[i]; ++k) drop_gradient(first_[i] + k);
    reach(now.later);
    release(i);
    remove(again);
    if (!any_passes) remove(raw);  // else it goes on as the operand's
    for (const change_memory& w : now.parameters) {
      if (w.frozen) continue;
      if (w.changes) reach(capped_sum(w.before, w.returning));
      remove(w.behind);
    }
    if (again_from_ > 0) {
      awaited_ = capped_sum(awaited_, now.learned);
      add(now.learned);
    }
    collect(i);
    for (int k = 0; k < now.operands.count; ++k) {
      if (!graded(k)) continue;
      const change_memory& x = now.operands[k];
      index_t mine = passes(k) ? raw : x.behind;
      if (x.changes) {
        reach(capped_sum(x.before, x.returning));
        add(x.before);
        remove(mine);
        mine = x.before;
      }
      arrive(operand_[i].of[k], mine, passes(k) ? passed : -1);
    }
    if (passed >= 0 && passed != count_ && --gradient_holders_[passed] == 0) remove(gradient_bytes_[passed]);
  }

  // The gradients of parameters that nodes share are added up until the first of them, which runs last, has its own.
  constexpr void collect(int i) {
    index_t& collected = collected_[owner_[i]];
    if (owner_[i] == i) remove(collected);
    else if (collected == 0) add(collected = of_[i].learned);
  }

  const recomputed_nodes* recomputed_ = nullptr;
  int recomputed_count_ = 0;
  int again_from_ = 0;   // the first value of what is recomputed now, of which there is at least an input before
  index_t awaited_ = 0;  // by parameters, of the gradients in it
  numbered<node_memory, Nodes> at_{};
  numbered<index_t, Nodes> collected_{};
  numbered<char, Nodes> needs_{};  // std::vector packs booleans
  numbered<char, Values> graded_{};
};

}  // namespace tessera::detail
