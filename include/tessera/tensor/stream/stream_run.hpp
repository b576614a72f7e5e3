#pragma once

#include <tessera/tensor/change/running_change.hpp>
#include <tessera/tensor/stream/stream_end.hpp>
#include <tessera/tensor/stream/stream_parts.hpp>

#include <list>
#include <memory>
#include <optional>

namespace tessera::detail {

/// A change of layout of a chunk, under way.
class chunk_on_its_way {
 public:
  chunk_on_its_way(const team_handle& team, const engine::shared_layout_handle& from,
                   const engine::shared_layout_handle& to, const at::Tensor& x)
      : call_(team, bound_change_of(*team, from, to, element_of_scalar(x.scalar_type()), team->doing()), x, {}) {
    if (call_.change->stays()) there_ = call_.change->run(x, call_.context);
    else running_.emplace(*call_.change, x, call_.context);
  }

  at::Tensor arrived() { return running_ ? running_->finish() : there_; }

 private:
  change_call call_;
  at::Tensor there_;
  std::optional<engine::running_change> running_;
};

/// A run of a stream on this worker.
class stream_run {
 public:
  stream_run(const team_handle& team, const engine::stream& s, const std::vector<at::Tensor>& x,
             const std::vector<bool>& wanted)
      : team_(team), s_(s), x_(x), wanted_(wanted) {
    for (const std::vector<stream_end>* ends : {&s.operands, &s.results})
      for (const stream_end& e : *ends)
        if (e.role == stream_role::part) {
          if (s.reach.limited()) parts_.emplace_back(e.lies->layout(), e.dim, s.rows, s.readers->layout(), s.reach);
          else parts_.emplace_back(e.lies->layout(), e.dim, s.rows);
          if (lies_ == nullptr) lies_ = &e.lies->layout();
        }
  }

  std::vector<at::Tensor> result() {
    begin_results();
    coordinates own;
    if (parts_.empty()) {
      compute({{{0, here()}}, 1}, x_, sums_);
    } else if (const stream_parts& first = parts_.front(); lies_->mesh.locate(team_->rank(), own)) {
      holds_ = engine::cutting{*lies_}.holds(own);
      for (int turn = 0; turn < first.turns(); ++turn)
        for (int chunk = 0; chunk < first.chunks(turn); ++chunk) step(own, turn, chunk);
      land();
    }
    std::vector<at::Tensor> y;
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      if (sums_[i].into.defined() && sums_[i].fresh && s_.results[i].role == stream_role::all) sums_[i].into.zero_();
      y.push_back(sums_[i].into.defined() ? sums_[i].into.to(s_.results[i].type) : at::Tensor());
    }
    return y;
  }

 private:
  struct met_chunk {
    int turn = -1;
    int chunk = -1;
    std::vector<std::unique_ptr<chunk_on_its_way>> operands;
  };

  bool is_wanted(std::size_t i) const { return wanted_.empty() || wanted_[i]; }
  const stream_end& end_of(std::size_t i) const {
    return i < s_.operands.size() ? s_.operands[i] : s_.results[i - s_.operands.size()];
  }

  // The extent of the streamed dimension where nothing cuts it.
  index_t here() const {
    for (std::size_t i = 0; i < s_.operands.size(); ++i)
      if (end_of(i).role == stream_role::range) return x_[i].size(end_of(i).dim);
    return 0;
  }
  void begin_results() {
    for (std::size_t i = 0; i < s_.results.size(); ++i) {
      const stream_end& e = s_.results[i];
      const at::ScalarType type = e.role == stream_role::range ? e.type : added_in(e.type);
      engine::stream_result r{is_wanted(i) ? at::empty(e.sizes, options_of(*team_, type)) : at::Tensor(), true};
      if (r.into.defined() && e.role == stream_role::range && s_.reach.limited()) r.into.zero_();  // not all is met
      sums_.push_back(std::move(r));
    }
  }

  template <class F>
  void each_part(const F& f) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < s_.operands.size() + s_.results.size(); ++i)
      if (end_of(i).role == stream_role::part) f(i, end_of(i), parts_[next++]);
  }

  // Nothing where another coordinate holds the tensors: such a worker takes part in what all of them do.
  at::Tensor rows_of(const at::Tensor& x, int dim, const engine::interval& at) const {
    return holds_ ? x.narrow(dim, at.lo, at.size()) : x;
  }
  // The same of several intervals; a copy where they lie apart.
  at::Tensor picked(const at::Tensor& x, int dim, const engine::row_intervals& at) const {
    if (at.count < 2 || !holds_) return rows_of(x, dim, at.empty() ? engine::interval() : at[0]);
    std::vector<at::Tensor> some;
    for (const engine::interval& i : at) some.push_back(rows_of(x, dim, i));
    return at::cat(some, dim);
  }

  // Lets the chunk of a turn come.
  void bring(const coordinates& own, int turn, int chunk) {
    coming_ = {turn, chunk, {}};
    coming_.operands.resize(s_.operands.size());
    if (turn == 0) return;
    each_part([&](std::size_t i, const stream_end& e, stream_parts& p) {
      if (i >= s_.operands.size()) return;
      const engine::row_intervals mine = p.places(p.met(own, 0), turn, chunk);
      coming_.operands[i] =
          std::make_unique<chunk_on_its_way>(team_, team_->intern(p.at(turn, chunk, false)),
                                             team_->intern(p.at(turn, chunk, true)), picked(x_[i], e.dim, mine));
    });
  }

  void step(const coordinates& own, int turn, int chunk) {
    const stream_parts& first = parts_.front();
    if (coming_.turn != turn || coming_.chunk != chunk) bring(own, turn, chunk);
    std::vector<at::Tensor> come(s_.operands.size());
    std::vector<engine::stream_result> sent(s_.results.size());
    each_part([&](std::size_t i, const stream_end& e, stream_parts& p) {
      const int part = p.met(own, turn);
      if (i < s_.operands.size()) {
        come[i] = turn == 0 ? picked(x_[i], e.dim, p.places(part, 0, chunk)) : coming_.operands[i]->arrived();
      } else if (const std::size_t r = i - s_.operands.size(); is_wanted(r)) {
        const engine::row_intervals to = p.places(part, turn, chunk);
        std::vector<index_t> sizes = e.sizes;
        if (holds_) sizes[static_cast<std::size_t>(e.dim)] = size_of(to);
        sent[r] = {
            turn == 0 ? picked(sums_[r].into, e.dim, to) : at::empty(sizes, options_of(*team_, added_in(e.type))),
            true};
      }
    });
    const bool last = chunk + 1 == first.chunks(turn);
    int next = last ? turn + 1 : turn;
    while (next < first.turns() && first.chunks(next) == 0) ++next;
    if (next < first.turns()) bring(own, next, last ? 0 : chunk + 1);
    if (holds_) compute(first.indices(first.met(own, turn), turn, chunk), come, sent);
    land();
    send(own, turn, chunk, sent);
  }

  void compute(const engine::row_intervals& where, const std::vector<at::Tensor>& come,
               const std::vector<engine::stream_result>& sent) {
    index_t at = 0;
    for (const engine::interval& i : where) {
      const engine::interval place{at, at + i.size()};
      at = place.hi;
      std::vector<at::Tensor> pieces;
      for (std::size_t o = 0; o < s_.operands.size(); ++o) {
        const stream_end& e = s_.operands[o];
        pieces.push_back(e.role == stream_role::all     ? x_[o]
                         : e.role == stream_role::range ? rows_of(x_[o], e.dim, i)
                                                        : rows_of(come[o], e.dim, place));
      }
      std::vector<engine::stream_result> to;
      std::vector<at::Tensor> rounded(s_.results.size());  // of a range, whose terms are one piece's
      for (std::size_t r = 0; r < s_.results.size(); ++r) {
        const stream_end& e = s_.results[r];
        if (!is_wanted(r)) to.emplace_back();
        else if (e.role == stream_role::all) to.push_back(sums_[r]);
        else if (e.role == stream_role::part) to.push_back({rows_of(sent[r].into, e.dim, place), true});
        else {
          const at::Tensor range = rows_of(sums_[r].into, e.dim, i);
          if (added_in(e.type) != e.type) rounded[r] = range;
          to.push_back({rounded[r].defined() ? range.to(added_in(e.type)) : range, true});
        }
      }
      s_.f->add(pieces, i, to);
      for (std::size_t r = 0; r < s_.results.size(); ++r) {
        if (rounded[r].defined()) rounded[r].copy_(to[r].into);
        if (s_.results[r].role == stream_role::all) sums_[r].fresh = false;
      }
    }
  }

  // Sends the terms of a part to its owner; of the own part they are there.
  void send(const coordinates& own, int turn, int chunk, const std::vector<engine::stream_result>& made) {
    if (turn == 0) return;
    each_part([&](std::size_t i, const stream_end& e, stream_parts& p) {
      if (i < s_.operands.size() || !is_wanted(i - s_.operands.size())) return;
      const std::size_t r = i - s_.operands.size();
      going_.emplace_back(r, e.dim, p.places(p.met(own, 0), turn, chunk), team_, team_->intern(p.at(turn, chunk, true)),
                          team_->intern(p.at(turn, chunk, false)), made[r].into);
    });
  }
  void land() {
    for (sent_chunk& one : going_) {
      const at::Tensor terms = one.terms.arrived();
      index_t at = 0;
      for (const engine::interval& i : one.places) {
        rows_of(sums_[one.result].into, one.dim, i).add_(rows_of(terms, one.dim, {at, at + i.size()}));
        at += i.size();
      }
    }
    going_.clear();
  }

  struct sent_chunk {
    sent_chunk(std::size_t of, int along, const engine::row_intervals& at, const team_handle& team,
               const engine::shared_layout_handle& from, const engine::shared_layout_handle& to, const at::Tensor& x)
        : result(of), dim(along), places(at), terms(team, from, to, x) {}

    std::size_t result;
    int dim;
    engine::row_intervals places;
    chunk_on_its_way terms;
  };

  const team_handle& team_;
  const engine::stream& s_;
  const std::vector<at::Tensor>& x_;
  const std::vector<bool>& wanted_;
  const layout* lies_ = nullptr;
  bool holds_ = true;
  std::vector<stream_parts> parts_;
  std::vector<engine::stream_result> sums_;
  met_chunk coming_;
  std::list<sent_chunk> going_;
};

}  // namespace tessera::detail
