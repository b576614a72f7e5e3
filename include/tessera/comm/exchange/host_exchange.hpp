#pragma once

#include <tessera/comm/box/matching_boxes.hpp>
#include <tessera/comm/exchange/bound_exchange.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace tessera::engine {

/// An exchange between tensors in the host's memory, whose boxes this worker copies and combines itself.
class host_exchange : public bound_exchange {
 protected:
  host_exchange(exchange_plan bound, int rank, std::shared_ptr<const void> carrier)
      : bound_exchange(std::move(bound), std::move(carrier)) {
    for (const box_transfer& l : plan().receives)
      if (l.peer == rank && !plan().fold) own_.push_back({l.extents, {l.there, l.here}});
    for (const term_cell& c : plan().cells) {
      std::vector<box_vector> begins;
      for (const int i : c.terms) {
        box_vector& inside = begins.emplace_back(c.here);
        for (int d = 0; d < inside.count; ++d) inside[d] -= plan().receives[static_cast<std::size_t>(i)].here[d];
      }
      begins.push_back(c.here);
      cells_.emplace_back(c.extents, std::move(begins));
      alone_.push_back(c.terms.size() == 1 && plan().receives[static_cast<std::size_t>(c.terms[0])].peer == rank);
    }
  }

  /// Shows this worker's boxes to their readers, or sends them.
  virtual void post(exchange_call& call) = 0;

  // Combines the terms; term(i) says where the box of receive i lies.
  template <class Term>
  void combine_terms(const exchange_call& call, Term&& term) {
    for (std::size_t c = 0; c < cells_.size(); ++c) combine_cell(c, call, term);
  }
  template <class Term>
  void combine_cell(std::size_t c, const exchange_call& call, Term&& term) {
    if (call.has_own && alone_[c]) return;
    const index_t size = bytes_of(call.out.element);
    std::size_t number = 0;
    for (const int i : plan().cells[c].terms) {
      cells_[c].lies(number, term(static_cast<std::size_t>(i)), size);
      ++number;
    }
    cells_[c].lies(number, {call.out.data, call.out.strides.begin()}, size);
    cells_[c].combine_others(call.out.element, plan().with);
  }

 private:
  void begin(exchange_call& call) final {
    if (!plan().covered && !call.has_own) fill_neutral(call.out, plan().with);
    post(call);
    if (call.has_own) return;
    for (matching_boxes& part : own_) part.copy({call.in.data, call.in.strides.begin()}, call.out);
  }

  std::vector<matching_boxes> own_;    // what this worker takes from itself
  std::vector<matching_boxes> cells_;  // terms, and the output
  std::vector<bool> alone_;            // whether a cell has this worker's term alone
};

}  // namespace tessera::engine
