#pragma once

#include <tessera/file/layout.hpp>
#include <tessera/nn/program.hpp>
#include <tessera/operation/functions/loss.hpp>

#include <algorithm>
#include <limits>
#include <set>

namespace tessera::nn {

/// What a file says of a node: its options by name. One that nobody asks for is refused.
class node_options {
 public:
  node_options(file::place here, const mesh_value& mesh, file::lists& keep) : here_(std::move(here)), mesh_(mesh), keep_(keep) {
    for (const char* every : {"name", "of", "layer", "function", "path", "shared", "recompute"}) asked_.insert(every);
  }

  const file::place& here() const { return here_; }
  bool has(const char* name) const { return here_.has(name); }

  index_t number(const char* name) const { return at(name).number(INT64_MIN, INT64_MAX); }
  index_t number(const char* name, index_t otherwise) const { return said(name) ? number(name) : otherwise; }
  double real(const char* name) const { return at(name).real(); }
  double real(const char* name, double otherwise) const { return said(name) ? real(name) : otherwise; }
  /// A number, or the word "infinite".
  double real_or_infinite(const char* name, double otherwise) const {
    if (!said(name) || !at(name).value().is_string()) return real(name, otherwise);
    if (at(name).word() != "infinite") at(name).fault("is no number and not infinite");
    return std::numeric_limits<double>::infinity();
  }
  bool flag(const char* name, bool otherwise) const { return said(name) ? at(name).flag() : otherwise; }
  std::string word(const char* name, const char* otherwise) const { return said(name) ? at(name).word() : otherwise; }

  /// The element of a name: "double", "float", "bfloat16", as messages say it.
  tessera::element element(const char* name) const { return file::read_element(at(name)); }
  tessera::element element(const char* name, tessera::element otherwise) const { return said(name) ? element(name) : otherwise; }
  /// What is said of an option that may be left to the layer.
  chosen<tessera::element> chosen_element(const char* name) const { return said(name) ? chosen(element(name)) : chosen<tessera::element>(); }
  chosen<index_t> chosen_number(const char* name) const { return said(name) ? chosen(number(name)) : chosen<index_t>(); }
  chosen<double> chosen_real(const char* name) const { return said(name) ? chosen(real(name)) : chosen<double>(); }
  chosen<layout> chosen_partition(const char* name) const { return said(name) ? chosen(partition(name)) : chosen<layout>(); }

  /// A number for all dimensions of a kernel, or a list of one each.
  per_dimension numbers(const char* name) const {
    return each<index_t>(name, [](const file::place& one) { return one.number(); });
  }
  numbers_per_dimension<double> reals(const char* name) const {
    return each<double>(name, [](const file::place& one) { return one.real(); });
  }
  /// "same" or "valid" in place of numbers; nothing where they are numbers.
  std::string padding_rule(const char* name) const {
    if (!said(name) || !at(name).value().is_string()) return {};
    const std::string rule = at(name).word();
    if (rule != "same" && rule != "valid") at(name).fault("is none of same, valid and numbers");
    return rule;
  }
  /// Axes of the mesh, outermost first.
  axis_names axes(const char* name) const {
    static_vector<text, max_axes> all;
    if (!said(name)) return axis_names(all);
    const file::place given = at(name).list();
    if (given.size() > max_axes) file::refuse(given, code::too_many, given.size());
    for (std::size_t i = 0; i < given.size(); ++i) {
      const std::string& word = keep_.names.emplace_back(given.item(i).word());
      all.push(text(word.data(), static_cast<int>(word.size())));
    }
    return axis_names(all);
  }
  /// "zeros", "reflect", "replicate" or "circular", of all dimensions of a kernel or of each.
  boundaries edges(const char* name) const {
    return each<boundary>(name, [](const file::place& one) {
      const std::vector<std::string> modes{"zeros", "reflect", "replicate", "circular"};
      const auto which = std::find(modes.begin(), modes.end(), one.word());
      if (which == modes.end()) one.fault("is none of zeros, reflect, replicate and circular");
      return static_cast<boundary>(which - modes.begin());
    });
  }
  /// "nearest", "nearest_exact", "linear", "cubic" or "area".
  interpolation interpolated(const char* name) const {
    if (!said(name)) return interpolation::nearest;
    const std::vector<std::string> modes{"nearest", "nearest_exact", "linear", "cubic", "area"};
    const auto which = std::find(modes.begin(), modes.end(), at(name).word());
    if (which == modes.end()) at(name).fault("is none of nearest, nearest_exact, linear, cubic and area");
    return static_cast<interpolation>(which - modes.begin());
  }
  /// "none", "mean", "sum" or "batch_mean".
  nn::reduction reduction(const char* name) const {
    if (!said(name)) return nn::reduction::mean;
    const std::vector<std::string> ways{"none", "mean", "sum", "batch_mean"};
    const auto which = std::find(ways.begin(), ways.end(), at(name).word());
    if (which == ways.end()) at(name).fault("is none of none, mean, sum and batch_mean");
    return static_cast<nn::reduction>(which - ways.begin());
  }
  /// "twice", "once" or "held".
  gathered times(const char* name) const {
    if (!said(name)) return gathered::twice;
    const std::vector<std::string> ways{"twice", "once", "held"};
    const auto which = std::find(ways.begin(), ways.end(), at(name).word());
    if (which == ways.end()) at(name).fault("is none of twice, once and held");
    return static_cast<gathered>(which - ways.begin());
  }
  /// The tensor that the node's "shape", "element", "dims" and "meaning" say.
  tensor_value tensor() const {
    for (const char* each : {"shape", "element", "dims", "meaning"}) asked_.insert(each);
    return file::read_tensor(here_, mesh_, keep_);
  }
  /// A number for all elements of a tensor, or a flat list of one each.
  initial_value initial(const char* name) const {
    if (!said(name)) return {};
    const file::place given = at(name);
    if (!given.value().is_array()) return init::constant(given.real());
    std::vector<double>& list = keep_.values.emplace_back();
    for (std::size_t i = 0; i < given.size(); ++i) list.push_back(given.item(i).real());
    return init::listed(list.data(), static_cast<index_t>(list.size()));
  }
  /// A partition, whatever the extents.
  layout partition(const char* name) const {
    const file::place given = at(name);
    const std::vector<index_t> ones(given.only({"dims", "meaning"}).at("dims").list().size(), dynamic);
    return file::layout_reader(given, mesh_, ones, false, keep_).value();
  }

  /// Refuses what nobody asked for.
  void refuse_others() const {
    for (const auto& [name, value] : here_.value().items())
      if (asked_.count(name) == 0) here_.fault(fmt::format("has a field \"{}\" that this node does not take", name));
  }

 private:
  template <class Number, class Read>
  numbers_per_dimension<Number> each(const char* name, const Read& read) const {
    numbers_per_dimension<Number> all;
    if (!said(name)) return all;
    const file::place given = at(name);
    if (!given.value().is_array()) {
      all.push(read(given));
      return all;
    }
    if (given.size() > 6) given.fault("has more numbers than a kernel has dimensions");
    for (std::size_t i = 0; i < given.size(); ++i) all.push(read(given.item(i)));
    return all;
  }
  bool said(const char* name) const {
    asked_.insert(name);
    return here_.has(name);
  }
  file::place at(const char* name) const {
    asked_.insert(name);
    return here_.at(name);
  }

  file::place here_;
  const mesh_value& mesh_;
  file::lists& keep_;
  mutable std::set<std::string> asked_;
};

}  // namespace tessera::nn
