#pragma once

#include <tessera/nn/parameter/parameter.hpp>

#include <torch/csrc/autograd/graph_task.h>

namespace tessera::detail {

/// The serial model's key for a parameter of this name in the network.
inline std::string serial_key(std::string_view name, const parameter_value& of) {
  std::string key(name);
  if (of.serial.name != nullptr) key.replace(key.size() - std::string_view(of.name).size(), key.npos, of.serial.name);
  return key;
}

// A tensor of these elements, one after the other.
template <class Elements>
at::Tensor converted(at::Tensor x, const Elements& to) {
  for (const at::ScalarType e : to) x = x.to(e);
  return x;
}

/// A parameter as a layer took it, converted, whose memory is freed between forward and backward. LibTorch's graph
/// holds its storage, empty meanwhile.
class released_tensor {
 public:
  released_tensor(const tensor<dyn>& stored, shared_layout_handle used, element as, std::vector<at::ScalarType> to,
                  std::string path, const at::Tensor& taken)
      : stored_(stored),
        used_(std::move(used)),
        comes_as_(as),
        converted_(std::move(to)),
        path_(std::move(path)),
        storage_(taken.storage().getWeakStorageImpl()),
        version_(stored.local()._version()),
        again_(stored.team()->doing()) {
    again_.why = purpose::backward;
  }

  void let_go() {
    if (gone_ || read_again_) return;
    fill(at::DataPtr(nullptr, stored_.local().device()), 0);
    gone_ = true;
  }
  /// Before the layer's backward reads it, which a graph of that backward does again. All workers gather, whoever still
  /// reads.
  void gather(bool read_again) {
    read_again_ = read_again_ || read_again;
    if (!gone_ || done_in_ == torch::autograd::get_current_graph_task_id()) return;
    if (stored_.local()._version() != version_) throw error(refusal{code::parameter_changed}, path_);
    const at::NoGradGuard no_graph;
    const scoped_context here(*stored_.team(), again_);
    const at::Tensor came =
        change_layout_rounded(stored_.team(), stored_.where(), used_, stored_.local().detach(), comes_as_);
    const at::Tensor again = converted(came, converted_).contiguous();
    fill(again.storage().unsafeGetStorageImpl()->set_data_ptr(at::DataPtr(nullptr, again.device())), again.nbytes());
    gone_ = false;
  }
  /// Its gradient has come, so whoever reads it in this backward has.
  void done() {
    done_in_ = torch::autograd::get_current_graph_task_id();
    let_go();
  }

 private:
  void fill(at::DataPtr memory, std::size_t bytes) const {
    const auto storage = storage_.lock();
    if (!storage) return;  // LibTorch saved it nowhere, or gave it back
    storage->set_nbytes(bytes);
    storage->set_data_ptr(std::move(memory));
  }

  tensor<dyn> stored_;
  shared_layout_handle used_;
  element comes_as_;
  std::vector<at::ScalarType> converted_;
  std::string path_;
  c10::weak_intrusive_ptr<c10::StorageImpl> storage_;
  std::int64_t version_;
  call_context again_;  ///< what the second gathering is for
  int done_in_ = -1;    ///< a backward
  bool gone_ = false;
  bool read_again_ = false;
};

}  // namespace tessera::detail

namespace tessera::nn {

TESSERA_INLINE parameter::parameter(const team_handle& team, std::string_view name, const parameter_value& of,
                                    element e, const seed& s)
    : engine::state_tensor(team, name, of.stored, of.initial, e, s, tessera::detail::serial_key(name, of), of.serial),
      used_(team->intern(of.used)),
      comes_as_(e),
      frozen_(of.frozen),
      gathered_(std::make_shared<engine::gathered_parameter>(stored(), path())) {
  engine::check(engine::check_gradient(e), path());
  stored().local().set_requires_grad(!frozen_);
}

TESSERA_INLINE at::Tensor parameter::use(std::initializer_list<at::ScalarType> to) const {
  check_copies();
  if (engine::holds(times_)) return detail::converted(gathered_->use(used_, comes_as_), to);
  const team_handle& team = stored().team();
  const bool may_last = times_ == gathering::once && comes_as_ == stored().type();
  const at::Tensor came =
      may_last ? view_.of(team, stored().where(), used_, stored().local())
               : engine::change_layout_rounded(team, stored().where(), used_, stored().local(), comes_as_);
  const at::Tensor used = detail::converted(came, to);
  if (times_ == gathering::twice) taken_ = {used, to};
  return used;
}

TESSERA_INLINE parameter parameter::alias() const {
  parameter other(with(at::alias(stored().local())), used_, comes_as_, times_, frozen_);
  if (engine::holds(times_)) other.gathered_->keep(used_, comes_as_, at::alias(leaf()));
  return other;
}

TESSERA_INLINE void parameter::changed_in_place() const {
  torch::autograd::impl::bump_version(stored().local());
  gathered_->follow();
}

TESSERA_INLINE void parameter::let_go(const std::vector<at::Tensor>& results) const {
  const auto [taken, to] = std::exchange(taken_, {});
  const auto in_its_memory = [&of = taken](const at::Tensor& y) { return y.storage().is_alias_of(of.storage()); };
  const auto has_graph = [](const at::Tensor& y) { return y.requires_grad(); };
  if (!taken.defined() || std::none_of(results.begin(), results.end(), has_graph) ||
      std::any_of(results.begin(), results.end(), in_its_memory))
    return;
  const auto released = std::make_shared<detail::released_tensor>(stored(), used_, comes_as_, to, path(), taken);
  released->let_go();
  for (const at::Tensor& y : results)
    if (y.requires_grad())
      y.register_hook([released](const at::Tensor&) { released->gather(at::GradMode::is_enabled()); });
  if (taken.requires_grad()) taken.register_hook([released](const at::Tensor&) { released->done(); });
}

}  // namespace tessera::nn
