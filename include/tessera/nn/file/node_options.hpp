#pragma once

#include <tessera/file/layout.hpp>
#include <tessera/nn/network/program.hpp>
#include <tessera/operation/function/loss.hpp>

#include <algorithm>
#include <limits>
#include <set>

namespace tessera::nn {

namespace engine {

/// A field of a node: its name, its value, and its default; a field without default must be there.
struct node_field {
  std::string name;
  std::string says;
  std::string otherwise;
};

/// The fields of every node, of a layer or a function.
inline const std::vector<node_field>& common_fields() {
  static const std::vector<node_field> all{
      {"name", "by which others read it", {}},
      {"of", "the operand, or a list of them: names of inputs or nodes, `\"n.0\"` the first of several results", {}},
      {"layer", "which layer it is", "a `function`"},
      {"function", "which function it is, instead", "a `layer`"},
      {"path", "of a layer: where it stands in the keys of the serial model", "its number"},
      {"shared", "of a layer: a name under which weights are tied", "its own weights"},
      {"recompute", "a name; neighbours that say the same run again for their backward, as one part", "they do not"},
      {"sharded_over", "of a layer: axes over which its parameters are stored as tiles", "copies"},
      {"gathered", "beside it, how often they are gathered: `twice`, `once`, `held` or `bundled`", "`twice`"}};
  return all;
}

}  // namespace engine

/// A file's description of a node: its options by name. One that nobody asks for is refused.
class node_options {
 public:
  node_options(engine::file::json_cursor here, const mesh_value& mesh, engine::file::lists& keep,
               std::vector<engine::node_field>* told = nullptr)
      : here_(std::move(here)), mesh_(mesh), keep_(keep), told_(told) {
    for (const engine::node_field& every : engine::common_fields())
      if (every.name != "sharded_over" && every.name != "gathered") asked_.insert(every.name);
  }

  const engine::file::json_cursor& here() const { return here_; }
  bool has(const char* name) const { return here_.has(name); }

  index_t number(const char* name) const {
    return tells(name, "a whole number") ? 1 : at(name).number(INT64_MIN, INT64_MAX);
  }
  index_t number(const char* name, index_t otherwise, const char* which_is = nullptr) const {
    return tells(name, "a whole number", which_is != nullptr ? which_is : fmt::format("{}", otherwise)) || !is_set(name)
               ? otherwise
               : number(name);
  }
  double real(const char* name) const { return tells(name, "a number") ? 1 : at(name).real(); }
  double real(const char* name, double otherwise, const char* which_is = nullptr) const {
    return tells(name, "a number", which_is != nullptr ? which_is : fmt::format("{}", otherwise)) || !is_set(name)
               ? otherwise
               : real(name);
  }
  /// A number, or the word "inf".
  double real_or_infinite(const char* name, double otherwise) const {
    if (tells(name, "a number, or `inf`", fmt::format("{}", otherwise)) || !is_set(name)) return otherwise;
    if (!at(name).value().is_string()) return real(name);
    if (at(name).word() != "inf") at(name).fault("is no number and not inf");
    return std::numeric_limits<double>::infinity();
  }
  /// A number, or null, which means what is said of it.
  engine::setting<double> real_or_null(const char* name, double otherwise, const char* null_is) const {
    if (tells(name, fmt::format("a number, or null: {}", null_is), fmt::format("{}", otherwise)) || !is_set(name))
      return otherwise;
    return at(name).value().is_null() ? engine::setting<double>() : engine::setting(real(name));
  }
  bool flag(const char* name, bool otherwise) const {
    return tells(name, "true or false", fmt::format("{}", otherwise)) || !is_set(name) ? otherwise : at(name).flag();
  }
  std::string word(const char* name, const char* otherwise) const {
    return tells(name, "a word", fmt::format("`{}`", otherwise)) || !is_set(name) ? otherwise : at(name).word();
  }

  /// The element of a name: "double", "float", "bfloat16", as messages say it.
  tessera::element element(const char* name) const {
    return tells(name, "an element") ? tessera::element::float32 : engine::file::read_element(at(name));
  }
  tessera::element element(const char* name, tessera::element otherwise) const {
    return tells(name, "an element", fmt::format("`{}`", engine::name_of(otherwise))) || !is_set(name) ? otherwise
                                                                                                       : element(name);
  }
  /// What is said of an option that may be left to the layer.
  engine::setting<tessera::element> element_setting(const char* name) const {
    return tells(name, "an element", "the input's") || !is_set(name) ? engine::setting<tessera::element>()
                                                                     : engine::setting(element(name));
  }
  engine::setting<index_t> number_setting(const char* name) const {
    return tells(name, "a whole number", "none") || !is_set(name) ? engine::setting<index_t>()
                                                                  : engine::setting(number(name));
  }
  engine::setting<double> real_setting(const char* name) const {
    return tells(name, "a number", "none") || !is_set(name) ? engine::setting<double>() : engine::setting(real(name));
  }
  engine::setting<layout> partition_setting(const char* name) const {
    return tells(name, "a partition", "as the layer gives it") || !is_set(name) ? engine::setting<layout>()
                                                                                : engine::setting(partition(name));
  }

  /// A number for all dimensions of a kernel, or a list of one each; `otherwise` is what the layer takes where there
  /// are none. Where it must be there it says how many dimensions there are.
  engine::per_dimension numbers(const char* name, const char* otherwise = "") const {
    const bool counts = *otherwise == 0;
    return each<index_t>(name,
                         counts ? "a list of whole numbers, one for each dimension; a number where there is one of them"
                                : "a whole number, or one for each dimension",
                         otherwise, [](const engine::file::json_cursor& one) { return one.number(); });
  }
  engine::numbers_per_dimension<double> reals(const char* name, const char* otherwise = "") const {
    return each<double>(name, "a number, or one for each dimension", otherwise,
                        [](const engine::file::json_cursor& one) { return one.real(); });
  }
  /// Numbers of which a kernel has two for each dimension as well, before and after it.
  engine::per_dimension widths(const char* name, const char* otherwise = "") const {
    return each<index_t>(name, "a whole number, one for each dimension, or two each, before and after it", otherwise,
                         [](const engine::file::json_cursor& one) { return one.number(); });
  }
  /// Two numbers for each of the last dimensions, before and after it.
  engine::per_dimension pairs(const char* name) const {
    return each<index_t>(name, "whole numbers, two for each of the last dimensions in order, before and after it", "",
                         [](const engine::file::json_cursor& one) { return one.number(); });
  }
  /// "same" or "valid" in place of numbers; nothing where they are numbers.
  std::string padding_rule(const char* name) const {
    if (tells(name, "`same`, `valid`, or whole numbers: one, one for each dimension, or two each, before and after it",
              "0"))
      return "same";
    if (!is_set(name) || !at(name).value().is_string()) return {};
    const std::string rule = at(name).word();
    if (rule != "same" && rule != "valid") at(name).fault("is none of same, valid and numbers");
    return rule;
  }
  /// Axes of the mesh, outermost first.
  engine::axis_names axes(const char* name, const char* which_are = "the cheapest cut") const {
    static_vector<text, engine::max_axes> all;
    if (tells(name, "a list of axes, outermost first", which_are) || !is_set(name)) return engine::axis_names(all);
    const engine::file::json_cursor given = at(name).list();
    if (given.size() > engine::max_axes) engine::file::refuse(given, code::too_many, given.size());
    for (std::size_t i = 0; i < given.size(); ++i) {
      const std::string& word = keep_.names.emplace_back(given.item(i).word());
      all.push(text(word.data(), static_cast<int>(word.size())));
    }
    return engine::axis_names(all);
  }
  /// "zeros", "reflect", "replicate" or "circular", of all dimensions of a kernel or of each.
  engine::boundaries edges(const char* name) const {
    static const std::vector<words_of<boundary>> modes{{"zeros", boundary::zero},
                                                       {"reflect", boundary::reflect},
                                                       {"replicate", boundary::replicate},
                                                       {"circular", boundary::periodic}};
    return each<boundary>(name, listed(modes) + ", or one for each dimension", "`zeros`",
                          [](const engine::file::json_cursor& one) { return one_of(one, modes); });
  }
  /// LibTorch's word for an interpolation, whatever the number of dimensions.
  interpolation interpolated(const char* name) const {
    using of = interpolation;
    return word_of<of>(name, of::nearest,
                       {{"nearest", of::nearest},
                        {"nearest-exact", of::nearest_exact},
                        {"linear", of::linear},
                        {"bilinear", of::linear},
                        {"trilinear", of::linear},
                        {"bicubic", of::cubic},
                        {"area", of::area}});
  }
  /// "none", "mean", "sum" or "batchmean".
  nn::reduction reduction(const char* name) const {
    using of = nn::reduction;
    return word_of<of>(name, of::mean,
                       {{"none", of::none}, {"mean", of::mean}, {"sum", of::sum}, {"batchmean", of::batch_mean}});
  }
  /// "backward", "ortho" or "forward".
  fft_norm norm(const char* name) const {
    using of = fft_norm;
    return word_of<of>(name, of::backward,
                       {{"backward", of::backward}, {"ortho", of::ortho}, {"forward", of::forward}});
  }
  /// "twice", "once", "held" or "bundled".
  gathering times(const char* name) const {
    return word_of<gathering>(name, gathering::twice,
                              {{"twice", gathering::twice},
                               {"once", gathering::once},
                               {"held", gathering::held},
                               {"bundled", gathering::bundled}});
  }
  /// The tensor that the node's "shape", "element", "dims" and "meaning" say.
  tensor_value tensor() const {
    if (told_ != nullptr) {
      told_->insert(told_->end(), {{"shape", "a list of whole numbers", {}},
                                   {"element", "an element", "`float`"},
                                   {"dims", "a cover for each dimension", {}},
                                   {"meaning", "what axes that cut none mean", "`replicate`"}});
      return {};
    }
    for (const char* each : {"shape", "element", "dims", "meaning"}) asked_.insert(each);
    return engine::file::read_tensor(here_, mesh_, keep_);
  }
  /// A number for all elements of a tensor, or a flat list of one each.
  initial_value initial(const char* name) const {
    if (tells(name, "a number, or a list of one for each element", "0") || !is_set(name)) return {};
    const engine::file::json_cursor given = at(name);
    if (!given.value().is_array()) return init::constant(given.real());
    std::vector<double>& list = keep_.values.emplace_back();
    for (std::size_t i = 0; i < given.size(); ++i) list.push_back(given.item(i).real());
    return init::listed(list.data(), static_cast<index_t>(list.size()));
  }
  /// A partition, whatever the extents.
  layout partition(const char* name) const {
    if (tells(name, "a partition")) return {};
    const engine::file::json_cursor given = at(name);
    const std::vector<index_t> ones(given.only({"dims", "meaning"}).at("dims").list().size(), dynamic);
    return engine::file::layout_reader(given, mesh_, ones, false, keep_).value();
  }

  /// Refuses what nobody asked for.
  void refuse_others() const {
    for (const auto& [name, value] : here_.value().items()) {
      if (asked_.count(name) > 0) continue;
      std::string all;
      for (const std::string& one : asked_) all += (all.empty() ? "" : ", ") + one;
      here_.fault(fmt::format("has a field \"{}\" that this node does not take; it takes {}", name, all));
    }
  }

 private:
  template <class Meant>
  using words_of = std::pair<const char*, Meant>;
  template <class Meant>
  static std::string listed(const std::vector<words_of<Meant>>& words, const char* quote = "`",
                            const char* last = " or ") {
    std::string all;
    for (std::size_t i = 0; i < words.size(); ++i)
      all += fmt::format("{}{}{}{}", i == 0 ? "" : i + 1 < words.size() ? ", " : last, quote, words[i].first, quote);
    return all;
  }
  template <class Meant>
  static Meant one_of(const engine::file::json_cursor& given, const std::vector<words_of<Meant>>& words) {
    const std::string said = given.word();
    for (const auto& one : words)
      if (said == one.first) return one.second;
    given.fault("is none of " + listed(words, "", " and "));
  }
  template <class Meant>
  Meant word_of(const char* name, Meant otherwise, const std::vector<words_of<Meant>>& words) const {
    const auto unless =
        std::find_if(words.begin(), words.end(), [&](const auto& one) { return one.second == otherwise; });
    return tells(name, listed(words), fmt::format("`{}`", unless->first)) || !is_set(name) ? otherwise
                                                                                           : one_of(at(name), words);
  }
  template <class Number, class Read>
  engine::numbers_per_dimension<Number> each(const char* name, const std::string& says, const char* otherwise,
                                             const Read& read) const {
    engine::numbers_per_dimension<Number> all;
    if (tells(name, says, otherwise) || !is_set(name)) return all;
    const engine::file::json_cursor given = at(name);
    if (!given.value().is_array()) {
      all.push(read(given));
      return all;
    }
    if (given.size() > 6) given.fault("has more numbers than a kernel has dimensions");
    for (std::size_t i = 0; i < given.size(); ++i) all.push(read(given.item(i)));
    return all;
  }
  // Whether the node's fields are told, not read.
  bool tells(const char* name, const std::string& says, const std::string& otherwise = {}) const {
    if (told_ != nullptr) told_->push_back({name, says, otherwise});
    return told_ != nullptr;
  }
  bool is_set(const char* name) const {
    asked_.insert(name);
    return here_.has(name);
  }
  engine::file::json_cursor at(const char* name) const {
    asked_.insert(name);
    return here_.at(name);
  }

  engine::file::json_cursor here_;
  const mesh_value& mesh_;
  engine::file::lists& keep_;
  std::vector<engine::node_field>* told_;
  mutable std::set<std::string> asked_;
};

}  // namespace tessera::nn
