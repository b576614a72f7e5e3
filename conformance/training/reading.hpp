#pragma once
// A case of training while it is read.

#include "attempt.hpp"

#include "../task.hpp"

namespace conformance::training {

/// What a worker of a world's mesh does in a run.
using body = std::function<void(attempt&)>;

/// A case with its worlds and what it expects. Nothing is passed over: what its reader did not ask for makes it
/// unbuilt.
class reading {
 public:
  explicit reading(test_case& c);

  const std::string& kind() const { return case_.kind; }
  bool refused() const { return case_.check.all().at("type") == "refused"; }
  /// The parameters.
  values& given() { return case_.given; }
  /// The worlds; a parameter that is to be said once a world has as many entries.
  std::vector<world>& worlds() { return worlds_; }
  /// The place of a world in the list; a world of one worker, where results are to have the bits of a run on one, is
  /// none of it.
  std::optional<std::size_t> number_of(const world& w) const;

  bool has(const std::string& name) { return given().has(name); }
  recipe tensor(const std::string& name) { return recipe(given().at(name)); }
  std::optional<recipe> maybe(const std::string& name) {
    return has(name) ? std::optional(tensor(name)) : std::nullopt;
  }
  /// The entries of a parameter that is an object, as {name, value}.
  std::vector<std::pair<std::string, json>> entries(const std::string& name);
  double number(const std::string& name, double otherwise);
  /// A number of the check.
  double check_number(const char* name, double otherwise) {
    return case_.check.has(name) ? case_.check.at(name).get<double>() : otherwise;
  }
  /// A word of a parameter, one of those known.
  std::string word(const std::string& name, std::initializer_list<const char*> known, const char* otherwise = nullptr);

  /// What is expected under a name, as it stands; null where nothing is.
  json expected(const std::string& name);
  /// An expected tensor, or none.
  std::optional<numbers> result(const std::string& name) { return numbers_of(expected(name)); }
  /// The expected gradients by name; one of another name than those known is unbuilt, if names are given.
  std::map<std::string, numbers> gradients(std::initializer_list<const char*> known = {},
                                           const char* under = "gradients");
  static std::optional<numbers> numbers_of(const json& said);

  /// Holds what we find of a plan against what is expected under a name; a case that expects nothing there compares
  /// nothing.
  void compare(const std::string& name, const json& ours);

  /// The task: a run of what `make(world)` gives for each world, element and number of chunks.
  task in_each_world(const std::function<body(world&)>& make);
  /// The task of a case whose workers do nothing.
  task planned();

 private:
  struct tested {
    tessera::element element;
    tolerance within;
  };

  void all_read() const;

  test_case& case_;
  values expected_;
  std::vector<world> worlds_;
  std::vector<tested> elements_;
  bool bitwise_ = false;
  std::vector<std::string> mismatches_;
};

}  // namespace conformance::training
