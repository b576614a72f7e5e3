#pragma once

#include <tessera/comm/team.hpp>
#include <tessera/nn/data/batch_reader.hpp>
#include <tessera/tensor/tensor.hpp>

#include <iterator>
#include <memory>
#include <optional>
#include <utility>

namespace tessera::nn {

namespace engine {

/// The type of a loader's inputs or targets: a tensor type, or tensor<dyn>.
template <class T>
concept BatchTensor = TensorType<T> || std::is_same_v<T, tensor<dyn>>;

template <BatchTensor T>
batch_reader::column_type column_type_of() {
  if constexpr (TensorType<T>) return value_of<T>;
  else return std::nullopt;
}

inline const team_handle& handle_of(const team_handle& team) { return team; }
template <Mesh M>
const team_handle& handle_of(const team<M>& of) {
  return of.state();
}

}  // namespace engine

/// Reads the samples of a LibTorch data set in batches, each worker its own part. A batch is one global tensor whose
/// dimension 0 is cut as its type, or `cut_by`, says.
///
///   ts::nn::loader<net::input, labels> samples(team, digits, {.batch = 64, .seed = {7}});
///   for (auto& [inputs, targets] : samples.epoch()) ...
///
/// Sample k of step s of epoch e is order(e)[s · batch + k] on any mesh, where order(e) is a permutation by (seed, e).
/// So another mesh trains on the same batches. Workers along axes that do not cut the batch read the same samples.
/// Types of inputs and targets: `loader<inputs>` for examples without target. Without types the tensors are
/// tensor<dyn>, copies along axes that `cut_by` does not name.
///
/// All workers of the team make it, of data sets of equally many samples, and ask for batches in one order. A read
/// error of one worker is an error on all, and the position stays. `get_batch` is called for a worker's own samples
/// alone.
template <class Inputs = tensor<dyn>, class Targets = void>
  requires engine::BatchTensor<Inputs> && (std::is_void_v<Targets> || engine::BatchTensor<Targets>)
class loader {
 public:
  /// A batch, as LibTorch's own loader gives it: `data`, and `target` where samples have one.
  using batch_type = torch::data::Example<Inputs, Targets>;
  using options = engine::loader_options;
  using position_type = engine::loader_position;

  template <class Team, engine::NumberedDataset Data>
    requires(engine::labelled<Data> == !std::is_void_v<Targets>)
  loader(const Team& team, Data data, options how = {}, call_site at = call_site::here())
      : reader_(std::make_unique<engine::batch_reader>(engine::handle_of(team), engine::samples_of(std::move(data)),
                                                       columns(), std::move(how), at)) {}

  index_t samples() const { return reader_->plan().samples; }
  /// Steps of an epoch: ⌈samples / batch⌉, or ⌊samples / batch⌋ with `drop_last`.
  index_t steps() const { return reader_->plan().steps(); }

  /// The position of the next batch.
  const position_type& position() const { return reader_->position(); }
  /// Goes on at another position, the same on all workers.
  void seek(const position_type& to) { reader_->seek(to); }

  /// The next batch of the epoch; none at its end, and the next call begins the next epoch.
  std::optional<batch_type> next(call_site at = call_site::here()) {
    auto given = reader_->next(at);
    return given ? std::optional(batch_of(std::move(*given))) : std::nullopt;
  }

  /// The batch of a step in [0, steps()) of an epoch; the position stays.
  batch_type at(index_t epoch, index_t step, call_site at = call_site::here()) {
    return batch_of(reader_->at(epoch, step, at));
  }

  /// The batches that are left of an epoch, one at a time.
  class batches {
   public:
    class iterator {
     public:
      using value_type = batch_type;
      using difference_type = std::ptrdiff_t;

      explicit iterator(batches& of) : of_(&of) {}
      batch_type& operator*() const { return *of_->now_; }
      batch_type* operator->() const { return &*of_->now_; }
      iterator& operator++() {
        of_->advance();
        return *this;
      }
      void operator++(int) { of_->advance(); }
      bool operator==(std::default_sentinel_t) const { return !of_->now_; }

     private:
      batches* of_;
    };

    batches(loader& of, call_site at) : of_(of), at_(at) {}
    iterator begin() {
      advance();
      return iterator(*this);
    }
    std::default_sentinel_t end() const { return {}; }

   private:
    void advance() {
      now_.reset();  // its memory is free before the next one's is taken
      now_ = of_.next(at_);
    }

    loader& of_;
    call_site at_;
    std::optional<batch_type> now_;
  };

  /// The rest of the epoch: all of it, unless the loader stands inside.
  batches epoch(call_site at = call_site::here()) { return {*this, at}; }

  /// The position and the order of samples, equal on all workers: what a checkpoint keeps.
  state_dict state() const { return reader_->state(); }
  /// Resumes another loader's position, on any mesh, in its order of samples. The state of a data set with another
  /// number of samples is refused. The position counts samples, so the batch may have another size.
  void load_state(const state_dict& state, call_site at = call_site::here()) { reader_->load_state(state, at); }

 private:
  static std::vector<engine::batch_reader::column_type> columns() {
    if constexpr (std::is_void_v<Targets>) return {engine::column_type_of<Inputs>()};
    else return {engine::column_type_of<Inputs>(), engine::column_type_of<Targets>()};
  }
  static batch_type batch_of(std::vector<tensor<dyn>> given) {
    if constexpr (std::is_void_v<Targets>) return {Inputs(std::move(given[0]))};
    else return {Inputs(std::move(given[0])), Targets(std::move(given[1]))};
  }

  std::unique_ptr<engine::batch_reader> reader_;
};

template <class Team, engine::NumberedDataset Data>
loader(const Team&, Data, engine::loader_options = {}, call_site = {})
    -> loader<tensor<dyn>, std::conditional_t<engine::labelled<Data>, tensor<dyn>, void>>;

}  // namespace tessera::nn
