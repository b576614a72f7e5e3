#pragma once

#include <tessera/nn/data/batch_reader.hpp>
#include <tessera/nn/data/shuffled_order.hpp>
#include <tessera/nn/file/throw_on_all.hpp>
#include <tessera/nn/refusals.hpp>

#include <algorithm>
#include <limits>

namespace tessera::nn::engine {

/// A tensor of no other dimension than the samples', which these axes cut.
inline layout cut_by_axes(const mesh_value& mesh, const std::vector<std::string>& axes) {
  layout x;
  x.mesh = mesh;
  x.placements.resize(mesh.axes.count);
  x.dims.push(dimension{});
  for (const std::string& name : axes) {
    const text called(name.data(), static_cast<int>(name.size()));
    const int a = mesh.find(called);
    if (a < 0) throw error(refusal{code::axis_not_in_mesh, called, mesh.axes.count});
    if (x.placements[a].kind == placement::cut) throw error(refusal{code::axis_used_twice, called});
    x.cut_by(0, a);
  }
  return x;
}

inline at::Tensor whole_number(index_t n) { return at::scalar_tensor(n, at::kLong); }

/// A whole number of a state; refuses what is none, or lies outside [0, most].
inline index_t whole_number(const state_dict& state, const char* key,
                            index_t most = std::numeric_limits<index_t>::max()) {
  const auto found = state.find(key);
  if (found == state.end() || !tessera::detail::readable(found->second) || found->second.dim() != 0 ||
      found->second.scalar_type() != at::kLong)
    throw error(refusal{code::loader_state_wrong}, key);
  const auto n = found->second.item<index_t>();
  if (n < 0 || n > most) throw error(refusal{code::loader_state_wrong}, key);
  return n;
}

TESSERA_INLINE batch_reader::batch_reader(const team_handle& team, sample_source source,
                                          std::vector<column_type> columns, loader_options options, call_site at)
    : team_(team),
      source_(std::move(source)),
      columns_(std::move(columns)),
      options_(std::move(options)),
      plan_{0, options_.batch, options_.drop_last},
      order_(tessera::detail::stream_of(options_.seed, "order") >> 1) {
  const scoped_context now(*team, {.why = purpose::agreement, .name = "making a loader", .at = at});
  const auto prepare = [&] {
    const std::optional<std::size_t> size = source_.size();
    if (!size) throw error(refusal{code::dataset_without_size});
    plan_.samples = static_cast<index_t>(*size);
    check_options();
    for (const column_type& one : columns_) {
      samples_lie_.push_back(one ? one->layout : cut_by_axes(team->mesh(), options_.cut_by));
      samples_lie_.back().dims.resize(1);
    }
  };
  if (team->inside()) {
    tessera::detail::throw_on_all(team, code::dataset_without_size, prepare);
    agree_on_options();
  } else {
    prepare();
  }
  if (options_.ahead > 0) thread_ = std::make_unique<background_thread<own_samples>>();
}

TESSERA_INLINE void batch_reader::check_options() const {
  bool typed = false;
  for (const column_type& one : columns_) typed = typed || one.has_value();
  if (options_.batch < 1 || options_.ahead < 0 || (typed && !options_.cut_by.empty()))
    throw error(refusal{code::loader_options_wrong});
  if (plan_.steps() == 0) throw error(refusal{code::epoch_without_steps, plan_.samples, plan_.batch});
  for (const column_type& one : columns_) {
    if (!one) continue;
    const layout& x = one->layout;
    if (x.dims.count == 0) throw error(refusal{code::ranks_differ, 1, 0});
    if (x.dims[0].bounds == learned) throw error(refusal{code::lengths_not_known, 0});
    if (x.dims[0].extent == dynamic) continue;
    // A batch of fixed extent is that of every step.
    const interval last = plan_.of_step(plan_.steps() - 1);
    for (const index_t n : {std::min(plan_.batch, plan_.samples), last.size()})
      if (n != x.dims[0].extent) throw error(refusal{code::extents_differ, 0, x.dims[0].extent, n});
  }
}

TESSERA_INLINE void batch_reader::agree_on_options() {
  fingerprint f;
  f << plan_.samples << plan_.batch << static_cast<int>(plan_.drop_last) << static_cast<int>(options_.shuffle)
    << order_;
  for (const layout& x : samples_lie_) f << batch_layout(x, plan_.batch);
  team_->agree(f.value(), "making a loader", [&] {
    return fmt::format("making a loader of {} samples in batches of {}{}{}", plan_.samples, plan_.batch,
                       options_.shuffle ? fmt::format(", shuffled by {:016x}", order_) : "",
                       plan_.drop_last ? ", the last uneven one left out" : "");
  });
}

TESSERA_INLINE loader_position batch_reader::behind(const loader_position& p) const {
  const interval batch = batch_at(p);
  return plan_.from(batch.hi).empty() ? loader_position{p.epoch + 1, 0} : loader_position{p.epoch, batch.hi};
}

TESSERA_INLINE std::vector<index_t> batch_reader::own_positions(const interval& batch, std::size_t column) const {
  std::vector<index_t> mine;
  for (const interval& one : positions_of(batch, samples_lie_[column], team_->rank()))
    for (index_t p = one.lo; p < one.hi; ++p) mine.push_back(p);
  return mine;
}

/// The samples that this worker needs for all columns, each once.
TESSERA_INLINE std::vector<index_t> batch_reader::positions_to_read(const interval& batch) const {
  if (!team_->inside()) return {batch.lo};  // nobody tells a worker outside of the mesh what a sample is
  std::vector<index_t> all;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const std::vector<index_t> mine = own_positions(batch, c);
    all.insert(all.end(), mine.begin(), mine.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

/// Reads this worker's samples of a batch when it is called, on whatever thread: what it needs is decided here.
TESSERA_INLINE std::function<own_samples()> batch_reader::reading(const loader_position& p) const {
  const shuffled_order order(plan_.samples, order_, p.epoch);
  std::vector<std::size_t> numbers;
  for (const index_t position : positions_to_read(batch_at(p)))
    numbers.push_back(static_cast<std::size_t>(options_.shuffle ? order[position] : position));
  return [numbers = std::move(numbers), &source = source_, count = columns_.size()] {
    own_samples mine;
    mine.failure = tessera::detail::packed_failure(code::sample_not_read, [&] {
      if (numbers.empty()) return;
      const at::NoGradGuard no_graph;
      mine.columns = source.read(numbers);
      for (const at::Tensor& one : mine.columns) {
        check(tessera::detail::check_plain(one));
        if (one.dim() < 1 || one.size(0) != static_cast<index_t>(numbers.size()))
          throw std::runtime_error(
              fmt::format("a batch of {} samples has extents {}", numbers.size(), c10::str(one.sizes())));
        if (one.dim() > max_dimensions) throw std::runtime_error("samples have too many dimensions");
      }
      if (mine.columns.size() != count) throw std::runtime_error("samples have other tensors than the loader");
    });
    if (!mine.failure.empty()) mine.columns.clear();
    return mine;
  };
}

TESSERA_INLINE own_samples batch_reader::read(const loader_position& p) {
  return thread_ ? thread_->begin(reading(p)).get() : reading(p)();
}

TESSERA_INLINE own_samples batch_reader::take_next() {
  if (ahead_.empty() || ahead_.front().position != position_) {
    forget_ahead();
    return read(position_);
  }
  own_samples mine = ahead_.front().samples.get();
  ahead_.pop_front();
  return mine;
}

TESSERA_INLINE void batch_reader::read_next_ahead() {
  while (ahead_.size() < static_cast<std::size_t>(options_.ahead)) {
    const loader_position next = behind(ahead_.empty() ? position_ : ahead_.back().position);
    ahead_.push_back({next, thread_->begin(reading(next))});
  }
}

TESSERA_INLINE void batch_reader::forget_ahead() {
  if (thread_) thread_->forget();
  ahead_.clear();
}

TESSERA_INLINE std::optional<std::vector<tensor<dyn>>> batch_reader::next(call_site at) {
  if (batch_at(position_).empty()) {
    position_ = {position_.epoch + 1, 0};
    return std::nullopt;
  }
  const own_samples mine = take_next();
  read_next_ahead();  // meanwhile
  std::vector<tensor<dyn>> batch = given(position_, mine, at);
  position_.sample = batch_at(position_).hi;
  return batch;
}

TESSERA_INLINE std::vector<tensor<dyn>> batch_reader::at(index_t epoch, index_t step, call_site at) {
  if (epoch < 0 || step < 0 || step >= plan_.steps())
    throw error(refusal{code::no_such_step, step, plan_.steps()}, fmt::format("epoch {}", epoch));
  const loader_position p{epoch, plan_.of_step(step).lo};
  return given(p, read(p), at);
}

TESSERA_INLINE std::vector<tensor<dyn>> batch_reader::given(const loader_position& p, const own_samples& mine,
                                                            call_site at) {
  const scoped_context now(*team_, {.why = purpose::agreement, .name = "reading a batch", .at = at});
  fingerprint number;
  number << p.epoch << p.sample << order_ << static_cast<int>(options_.shuffle);
  kinds_.agree(team_, number.value(), mine);
  const interval batch = batch_at(p);
  std::vector<tensor<dyn>> all;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const layout x = layout_of(c, batch.size());
    const at::Tensor box = box_of_column(c, x, batch, mine.columns.empty() ? at::Tensor() : mine.columns[c]);
    all.push_back(tessera::detail::first_term(
        tessera::detail::tensor_of(team_, x, box, tessera::detail::next_lineage(*team_, x.mesh))));
    tessera::detail::compare_entry(all.back(), at);
  }
  return all;
}

/// How a batch of so many samples lies; refuses samples that are not what their type says.
TESSERA_INLINE layout batch_reader::layout_of(std::size_t column, index_t samples) const {
  const sample_kind& kind = kinds_[column];
  const auto dims = static_cast<int>(kind.sizes.size()) + 1;
  layout x = columns_[column] ? columns_[column]->layout : samples_lie_[column];
  if (columns_[column]) {
    check(tessera::detail::check_element(columns_[column]->element, kind.type), *team_);
    if (x.dims.count != dims) throw error(refusal{code::ranks_differ, x.dims.count, dims}, team_->label());
  }
  x.dims[0].extent = samples;
  for (int d = 1; d < dims; ++d) {
    const index_t n = kind.sizes[static_cast<std::size_t>(d - 1)];
    if (d == x.dims.count) {
      x.dims.push(dimension{});
      x.dims[d].extent = n;
    }
    if (x.dims[d].extent == dynamic) x.dims[d].extent = n;
    if (x.dims[d].extent != n) throw error(refusal{code::extents_differ, d, x.dims[d].extent, n}, team_->label());
  }
  check(check(x), *team_);
  return x;
}

/// This worker's box: of the samples that it read those of the column, and of each its part of the other dimensions.
TESSERA_INLINE at::Tensor batch_reader::box_of_column(std::size_t column, const layout& x, const interval& batch,
                                                      const at::Tensor& read) const {
  const holding held = held_by(x, team_->rank());
  const c10::Device device = device_of(*team_);
  const std::vector<index_t> mine = own_positions(batch, column);
  if (mine.empty() || !team_->inside())
    return at::empty(tessera::detail::sizes_of(held), at::TensorOptions(kinds_[column].type).device(device));
  at::Tensor part = read.detach();
  if (const std::vector<index_t> all = positions_to_read(batch); all != mine) {
    std::vector<index_t> rows;
    for (const index_t p : mine) rows.push_back(std::lower_bound(all.begin(), all.end(), p) - all.begin());
    part = part.index_select(0, at::tensor(rows, part.options().dtype(at::kLong)));
  }
  for (int d = 1; d < held.count; ++d) {
    std::vector<at::Tensor> pieces;
    for (const interval& one : held[d]) pieces.push_back(part.narrow(d, one.lo, one.size()));
    part = pieces.size() == 1 ? pieces[0] : at::cat(pieces, d);
  }
  return part.contiguous().to(device);
}

TESSERA_INLINE void batch_reader::seek(const loader_position& to) {
  if (to.epoch < 0 || to.sample < 0 || to.sample > plan_.samples)
    throw error(refusal{code::no_such_step, to.sample, plan_.samples}, fmt::format("sample of epoch {}", to.epoch));
  position_ = to;
}

TESSERA_INLINE state_dict batch_reader::state() const {
  return {{"order", whole_number(static_cast<index_t>(order_))},
          {"shuffle", whole_number(options_.shuffle ? 1 : 0)},
          {"epoch", whole_number(position_.epoch)},
          {"sample", whole_number(position_.sample)},
          {"samples", whole_number(plan_.samples)}};
}

TESSERA_INLINE void batch_reader::load_state(const state_dict& state, call_site at) {
  const scoped_context now(*team_, {.why = purpose::state, .name = "loading a state", .at = at});
  if (team_->inside()) tessera::detail::agree_on_state(team_, state, "");
  const index_t samples = whole_number(state, "samples");
  if (samples != plan_.samples) throw error(refusal{code::other_dataset, samples, plan_.samples});
  const loader_position to{whole_number(state, "epoch"), whole_number(state, "sample", samples)};
  const bool shuffle = whole_number(state, "shuffle", 1) == 1;
  order_ = static_cast<std::uint64_t>(whole_number(state, "order"));
  options_.shuffle = shuffle;
  position_ = to;
  forget_ahead();
}

}  // namespace tessera::nn::engine
