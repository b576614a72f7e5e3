#pragma once

#include <tessera/nn/data/background_thread.hpp>
#include <tessera/nn/data/batch_plan.hpp>
#include <tessera/nn/data/sample_kinds.hpp>
#include <tessera/nn/data/sample_source.hpp>
#include <tessera/nn/parameter/state_dict.hpp>
#include <tessera/tensor/random.hpp>

#include <deque>
#include <memory>
#include <string>

namespace tessera::nn::engine {

/// How a loader makes batches of samples.
struct loader_options {
  index_t batch = 1;                  ///< samples of a step, over all workers
  tessera::seed seed{};               ///< of the order of samples
  bool shuffle = true;                ///< each epoch in another order, else as they are numbered
  bool drop_last = false;             ///< leaves out an uneven last batch
  std::vector<std::string> cut_by{};  ///< axes that cut a batch, outermost first, where no tensor type says it
  int ahead = 0;                      ///< batches that a thread of its own reads while earlier ones are used
};

/// The position of a loader: so many samples of so many epochs were given before.
struct loader_position {
  index_t epoch = 0;
  index_t sample = 0;  ///< of the epoch's order

  friend bool operator==(const loader_position&, const loader_position&) = default;
};

/// Reads batches: of each one a worker's own samples, as boxes of tensors that lie over the team.
class batch_reader {
 public:
  /// A tensor type's description of a column; nothing where `cut_by` gives the layout.
  using column_type = std::optional<tensor_value>;

  /// All workers of the team make it, of data sets of equally many samples.
  batch_reader(const team_handle& team, sample_source source, std::vector<column_type> columns, loader_options options,
               call_site at);

  const batch_plan& plan() const { return plan_; }
  const loader_position& position() const { return position_; }

  /// The next batch of the epoch; none at its end, behind which the next epoch begins.
  std::optional<std::vector<tensor<dyn>>> next(call_site at);
  /// The batch of a step in [0, steps) of an epoch; the position stays.
  std::vector<tensor<dyn>> at(index_t epoch, index_t step, call_site at);
  /// Goes on at another position, the same on all workers.
  void seek(const loader_position& to);

  state_dict state() const;
  void load_state(const state_dict& state, call_site at);

 private:
  struct read_ahead {
    loader_position position;
    std::future<own_samples> samples;
  };

  void check_options() const;
  void agree_on_options();
  interval batch_at(const loader_position& p) const { return plan_.from(p.sample); }
  loader_position behind(const loader_position& p) const;
  std::vector<index_t> own_positions(const interval& batch, std::size_t column) const;
  std::vector<index_t> positions_to_read(const interval& batch) const;

  std::function<own_samples()> reading(const loader_position& p) const;
  own_samples read(const loader_position& p);
  own_samples take_next();
  void read_next_ahead();
  void forget_ahead();

  std::vector<tensor<dyn>> given(const loader_position& p, const own_samples& mine, call_site at);
  layout layout_of(std::size_t column, index_t samples) const;
  at::Tensor box_of_column(std::size_t column, const layout& x, const interval& batch, const at::Tensor& read) const;

  team_handle team_;
  sample_source source_;
  std::vector<column_type> columns_;
  loader_options options_;
  std::vector<layout> samples_lie_;  ///< how each column's dimension 0 is cut, over any number of samples
  batch_plan plan_;
  std::uint64_t order_ = 0;  ///< the stream of numbers that shuffles: 63 bits, a whole number of a state
  loader_position position_;
  sample_kinds kinds_{columns_.size()};

  std::deque<read_ahead> ahead_;
  std::unique_ptr<background_thread<own_samples>> thread_;  // last: what it does refers to the others
};

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/data/batch_reader_impl.hpp>
#endif
