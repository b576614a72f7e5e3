#pragma once

#include <tessera/comm/base/header_or_compiled.hpp>
#include <tessera/nn/file/checkpoint_index.hpp>
#include <tessera/nn/parameter/state_value.hpp>

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/schedulers/lr_scheduler.h>

#include <concepts>
#include <memory>
#include <utility>

namespace tessera::nn::engine {

/// The leaves that optimizers step, as LibTorch knows them, and what a checkpoint keeps of them: tensors that lie end
/// to end in them.
using known_leaves = std::map<const c10::TensorImpl*, std::vector<kept_tensor>>;

/// One thing that a checkpoint keeps, seen by the one who writes and reads: tensors that lie over workers, and small
/// values. All workers call all of it, in one order.
class checkpoint_part {
 public:
  explicit checkpoint_part(std::string name) : name_(std::move(name)) {}
  virtual ~checkpoint_part() = default;

  const std::string& name() const { return name_; }
  virtual std::string kind() const = 0;
  /// The team that speaks for it; none for what every worker has alone.
  virtual team_handle team() const { return nullptr; }
  virtual void add_leaves(known_leaves&) const {}

  /// Before it is saved: what it finds by itself, then what workers must tell each other.
  virtual void prepare(const known_leaves&) {}
  virtual void gather(const team_handle&) {}
  virtual std::vector<kept_tensor> tensors(const team_handle& team) = 0;
  virtual small_values values() const { return {}; }

  /// Which tensors it would take of a checkpoint; refuses values that are not its own. Nothing changes.
  virtual std::vector<kept_tensor> wanted(const filed_entry& from, const checkpoint_index&, const team_handle& team,
                                          const known_leaves&) {
    static_cast<void>(from);
    return tensors(team);
  }
  /// Whether it looks at small tensors before it takes them, and may refuse them: these are loaded before all else.
  virtual bool may_refuse() const { return false; }
  /// Those of its tensors.
  virtual std::vector<kept_tensor> small_tensors(const team_handle&) { return {}; }
  /// Makes room for what it takes. Then its tensors are read, of one that may refuse the small ones.
  virtual void begin_loading(const filed_entry&) {}
  /// Takes these, and the values.
  virtual void end_loading(const filed_entry&) {}
  /// Everything is loaded; workers may exchange what follows of it.
  virtual void loaded() {}
  /// Another part was refused: it is what it was.
  virtual void undo_loading() {}

 protected:
  std::string key(const std::string& of) const { return name_ + "/" + of; }
  /// Throws because the checkpoint has something else.
  [[noreturn]] void refuse(const std::string& what) const {
    throw error(refusal{code::other_parameters, 1, 0}, name_ + ": " + what);
  }

 private:
  std::string name_;
};

/// All that a checkpoint keeps, in order.
using kept_parts = std::vector<std::shared_ptr<checkpoint_part>>;

inline known_leaves leaves_of(const kept_parts& parts) {
  known_leaves leaves;
  for (const auto& p : parts) p->add_leaves(leaves);
  return leaves;
}

/// Throws on every worker of the team unless all say the same text.
inline void agree_on_text(team_state& team, const std::string& said) {
  team.agree(text(said.data(), static_cast<int>(said.size())).hash, "comparing checkpoints",
             [&] { return said.substr(0, said.find('\n')); });
}

/// A network, or what shows its parameters as one does.
template <class Network>
class kept_network final : public checkpoint_part {
 public:
  kept_network(std::string name, const Network& net) : checkpoint_part(std::move(name)), net_(&net) {}

  std::string kind() const override { return "network"; }
  team_handle team() const override { return tessera::detail::team_of(*net_); }
  void add_leaves(known_leaves& leaves) const override {
    net_->each_parameter([&](const nn::parameter& p) {
      leaves[p.stored().local().unsafeGetTensorImpl()] = {kept_tensor::of(p, key(""))};
    });
  }
  std::vector<kept_tensor> tensors(const team_handle&) override {
    std::vector<kept_tensor> all;
    for (const auto& [serial, parts] : tessera::detail::state_by_key(*net_))
      for (const state_tensor* part : parts) all.push_back(kept_tensor::of(*part, key("")));
    return all;
  }

 private:
  const Network* net_;
};

/// A tensor that every worker of a team has alike.
kept_tensor kept_everywhere(const team_handle& team, std::string key, const at::Tensor& t);

/// A module of LibTorch that every worker of a team has alike.
class kept_module final : public checkpoint_part {
 public:
  kept_module(std::string name, team_handle team, torch::nn::Module& module)
      : checkpoint_part(std::move(name)), team_(std::move(team)), module_(&module) {}

  std::string kind() const override { return "network"; }
  team_handle team() const override { return team_; }
  TESSERA_INLINE void add_leaves(known_leaves& leaves) const override;
  TESSERA_INLINE std::vector<kept_tensor> tensors(const team_handle&) override;

 private:
  team_handle team_;
  torch::nn::Module* module_;
};

/// The serial tensors that a value is made of.
std::vector<kept_tensor> kept_values(const state_value& v, const std::string& before);

/// What `data_parallel` or `bundle_shards` has: the network, as a module that every worker has alike.
template <shows_values T>
class kept_training final : public checkpoint_part {
 public:
  kept_training(std::string name, T& of) : checkpoint_part(std::move(name)), of_(&of) {}

  std::string kind() const override { return "network"; }
  team_handle team() const override { return of_->team(); }
  void add_leaves(known_leaves& leaves) const override {
    for (const state_value& v : of_->values())
      if (v.stepped) leaves[v.lies.local().unsafeGetTensorImpl()] = kept_values(v, key(""));
  }
  std::vector<kept_tensor> tensors(const team_handle&) override {
    std::vector<kept_tensor> all;
    for (const state_value& v : of_->values())
      for (kept_tensor& one : kept_values(v, key(""))) all.push_back(std::move(one));
    return all;
  }
  void loaded() override {
    if constexpr (requires { of_->gather(); }) of_->gather();
  }

 private:
  T* of_;
};

/// Tensors that something shows by `each_tensor(visit)`, and small state of which it gives a dict: `state()`,
/// `load_state(dict)`.
template <class T>
inline constexpr bool shows_tensors =
    requires(T& of, void (*visit)(const std::string&, tensor<dyn>&)) { of.each_tensor(visit); };
template <class T>
inline constexpr bool has_small_state = requires(T& of, const T& as, const state_dict& state) {
  { as.state() } -> std::convertible_to<state_dict>;
  of.load_state(state);
};

template <class T>
class kept_state final : public checkpoint_part {
 public:
  kept_state(std::string name, T& of) : checkpoint_part(std::move(name)), of_(&of) {}

  std::string kind() const override { return "state"; }
  bool may_refuse() const override { return has_small_state<T>; }

  team_handle team() const override {
    team_handle first;
    if constexpr (shows_values<T>) return of_->values().empty() ? first : of_->values()[0].lies.team();
    else if constexpr (shows_tensors<T>)
      of_->each_tensor([&](const std::string&, tensor<dyn>& t) { first = first ? first : t.team(); });
    return first;
  }
  std::vector<kept_tensor> tensors(const team_handle& team) override {
    std::vector<kept_tensor> all;
    if constexpr (shows_values<T>) {
      for (const state_value& v : of_->values())
        for (kept_tensor& one : kept_values(v, key(""))) all.push_back(std::move(one));
    } else if constexpr (shows_tensors<T>) {
      of_->each_tensor([&](const std::string& k, tensor<dyn>& t) { all.push_back(kept_tensor::of(key(k), t)); });
    }
    for (kept_tensor& one : small_tensors(team)) all.push_back(std::move(one));
    return all;
  }
  std::vector<kept_tensor> small_tensors(const team_handle& team) override {
    std::vector<kept_tensor> all;
    if constexpr (has_small_state<T>)
      for (const auto& [k, t] : room_.empty() ? state_dict(of_->state()) : room_)
        all.push_back(kept_everywhere(team, key(k), t));
    return all;
  }
  void begin_loading(const filed_entry&) override {
    if constexpr (has_small_state<T>) {
      before_ = of_->state();
      for (const auto& [k, t] : before_) room_[k] = at::empty_like(t, at::MemoryFormat::Contiguous);
      for (auto& [k, t] : before_) t = t.clone();
    }
  }
  void end_loading(const filed_entry&) override {
    if constexpr (has_small_state<T>) of_->load_state(std::exchange(room_, {}));
  }
  void undo_loading() override {
    if constexpr (has_small_state<T>) of_->load_state(before_);
  }

 private:
  T* of_;
  state_dict room_, before_;
};

/// A number of the program: how many steps there were.
template <class T>
  requires std::is_arithmetic_v<T>
class kept_number final : public checkpoint_part {
 public:
  kept_number(std::string name, T& of) : checkpoint_part(std::move(name)), of_(&of) {}

  std::string kind() const override { return std::is_floating_point_v<T> ? "real" : "integer"; }
  std::vector<kept_tensor> tensors(const team_handle&) override { return {}; }
  small_values values() const override {
    if constexpr (std::is_floating_point_v<T>) return {{"value", static_cast<double>(*of_)}};
    else return {{"value", static_cast<std::int64_t>(*of_)}};
  }
  std::vector<kept_tensor> wanted(const filed_entry& from, const checkpoint_index&, const team_handle&,
                                  const known_leaves&) override {
    const auto value = from.values.find("value");
    if (value == from.values.end() || !fits(value->second)) refuse("has no such number");
    return {};
  }
  void end_loading(const filed_entry& from) override {
    *of_ = static_cast<T>(std::get<filed>(from.values.at("value")));
  }

 private:
  using filed = std::conditional_t<std::is_floating_point_v<T>, double, std::int64_t>;

  static bool fits(const small_values::mapped_type& value) {
    const filed* is = std::get_if<filed>(&value);
    return is != nullptr && (*is != *is || static_cast<filed>(static_cast<T>(*is)) == *is);
  }

  T* of_;
};

/// A schedule of LibTorch: how many steps it made. The learning rates that it made of them are the optimizer's.
class kept_schedule final : public checkpoint_part {
 public:
  kept_schedule(std::string name, torch::optim::LRScheduler& of) : checkpoint_part(std::move(name)), of_(&of) {}

  std::string kind() const override { return "schedule"; }
  std::vector<kept_tensor> tensors(const team_handle&) override { return {}; }
  TESSERA_INLINE small_values values() const override;
  TESSERA_INLINE std::vector<kept_tensor> wanted(const filed_entry& from, const checkpoint_index&, const team_handle&,
                                                 const known_leaves&) override;
  TESSERA_INLINE void end_loading(const filed_entry& from) override;

 private:
  torch::optim::LRScheduler* of_;
};

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/file/checkpoint_part_impl.hpp>
#endif
