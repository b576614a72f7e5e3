#include "reading.hpp"

#include "../partitions.hpp"
#include "../phrases.hpp"

namespace conformance::training {
namespace {

/// One run: what a worker of the mesh does, and with what.
struct run {
  mesh_value mesh;
  body does;
  tessera::element element;
  tolerance within;
  index_t chunk;
  std::string where;  ///< for whoever reads that it failed
};

/// What a worker says of a run.
struct said {
  std::string fault;
  std::string code;
  double figure = 0;
};

/// What all workers say of a run, the same on each of them.
std::vector<said> told(const team_handle& all, const said& mine) {
  std::vector<said> each;
  for (const std::string& text : all->collect_text(json{mine.fault, mine.code, mine.figure}.dump())) {
    const json of = json::parse(text);
    each.push_back({of[0], of[1], of[2].is_number() ? of[2].get<double>() : 0});
  }
  return each;
}

said run_here(const team_handle& all, const run& r, bits_so_far* bits, bool refused) {
  if (!r.mesh.contains(all->rank())) return {};
  attempt a(std::make_shared<team_state>(all->shared_carrier(), r.mesh), r.element, r.within, r.chunk, bits);
  try {
    r.does(a);
  } catch (const error& e) {
    if (!refused) throw;
    return {{}, e.code(), 0};
  }
  return {a.fault(), {}, a.figure()};
}

verdict judge(const team_handle& all, const std::vector<run>& runs, bool bitwise, bool refused) {
  bits_so_far bits;
  verdict v;
  for (const run& r : runs) {
    const std::vector<said> each = told(all, run_here(all, r, bitwise ? &bits : nullptr, refused));
    const said& first = each[static_cast<std::size_t>(r.mesh.rank(r.mesh.at(0)))];
    for (int i = 0; i < r.mesh.size(); ++i) {
      const int worker = r.mesh.rank(r.mesh.at(i));
      const said& one = each[static_cast<std::size_t>(worker)];
      v.figure = std::max(v.figure, one.figure);
      if (!one.fault.empty())
        return {result::fail, one.figure, fmt::format("{}, worker {}: {}", r.where, worker, one.fault)};
      if (one.code != first.code)
        return {result::fail, 0,
                fmt::format("{}: worker {} meets '{}', another '{}'", r.where, worker, one.code, first.code)};
    }
    if (refused && first.code.empty())
      return {result::fail, 0, fmt::format("{}: what must be refused is accepted", r.where)};
    if (refused) v.why = fmt::format("refused with {}", first.code);
  }
  return v;
}

/// Our numbers, but for theirs where these are near enough.
json settled(const json& theirs, json ours, const tolerance& within) {
  if (theirs.is_number_float() && ours.is_number_float()) {
    const double wanted = theirs.get<double>();
    return std::abs(ours.get<double>() - wanted) <= within.atol + within.rtol * std::abs(wanted) ? theirs : ours;
  }
  if (theirs.is_array() && ours.is_array() && theirs.size() == ours.size())
    for (std::size_t i = 0; i < ours.size(); ++i) ours[i] = settled(theirs[i], ours[i], within);
  return ours;
}

}  // namespace

reading::reading(test_case& c) : case_(c), expected_(c.expected.is_object() ? c.expected : json::object()) {
  static const std::set<std::string> kinds{"groups",   "neighbours", "plan",   "schedule", "equivalence",
                                           "gradient", "refused",    "memory", "bitwise"};
  if (kinds.count(c.kind) == 0) throw unbuilt(fmt::format("cases of the kind '{}'", c.kind));
  if (!c.expected.is_null() && !c.expected.is_object()) throw unbuilt("what is expected is no list of names");
  static const std::set<std::string> types{"exact", "allclose", "refused", "at_most", "bitwise"};
  const std::string type = c.check.text("type");
  if (types.count(type) == 0) throw unbuilt(fmt::format("the check '{}'", type));
  bitwise_ = type == "bitwise";
  if (given().has("worlds"))
    for (const json& one : given().at("worlds")) worlds_.emplace_back(one);
  if (c.check.has("elements"))
    for (const auto& [name, within] : c.check.at("elements").items())
      elements_.push_back({element_named(name), {within.at(0), within.at(1)}});
  if (elements_.empty()) elements_.push_back({element::float64, {}});
  for (values* of : {&c.given, &c.check})
    for (const char* remark : {"note", "why"}) of->has(remark);
}

std::vector<std::pair<std::string, json>> reading::entries(const std::string& name) {
  std::vector<std::pair<std::string, json>> all;
  const json& said = given().at(name);
  for (const auto& [key, value] : said.items()) all.emplace_back(key, value);
  return all;
}

double reading::number(const std::string& name, double otherwise) {
  if (!has(name)) return otherwise;
  const json& said = given().at(name);
  if (!said.is_number())
    throw unbuilt(fmt::format("the parameter '{}' is {}, which says nothing here", name, said.dump()));
  return said.get<double>();
}

std::string reading::word(const std::string& name, std::initializer_list<const char*> known, const char* otherwise) {
  if (otherwise != nullptr && !has(name)) return otherwise;
  const std::string said = given().text(name);
  if (std::find(known.begin(), known.end(), said) == known.end())
    throw unbuilt(fmt::format("the word '{}' of '{}' is unknown here", said, name));
  return said;
}

json reading::expected(const std::string& name) { return expected_.has(name) ? expected_.at(name) : json(); }

std::optional<numbers> reading::numbers_of(const json& said) {
  return said.is_null() ? std::nullopt : std::optional(numbers(said));
}

std::optional<std::size_t> reading::number_of(const world& w) const {
  for (std::size_t i = 0; i < worlds_.size(); ++i)
    if (&worlds_[i] == &w) return i;
  return {};
}

std::map<std::string, numbers> reading::gradients(std::initializer_list<const char*> known, const char* under) {
  std::map<std::string, numbers> all;
  const json each = expected(under);
  for (const auto& [name, said] : each.items()) {
    if (known.size() > 0 &&
        std::find_if(known.begin(), known.end(), [&named = name](const char* k) { return named == k; }) == known.end())
      throw unbuilt(fmt::format("the gradient of '{}'", name));
    all.emplace(name, said);
  }
  return all;
}

void reading::compare(const std::string& name, const json& ours) {
  if (const json theirs = expected(name); !theirs.is_null())
    conformance::compare(theirs, settled(theirs, ours, elements_.front().within), name + " ", mismatches_);
}

void reading::all_read() const {
  for (const values* of : {&std::as_const(case_.given), &std::as_const(case_.check), &expected_})
    for (const std::string& name : of->unread())
      throw unbuilt(fmt::format("'{}' = {} is unknown here", name, of->all().at(name).dump().substr(0, 200)));
  for (const world& w : worlds_)
    // of a tensor that is not there it makes no difference to what is refused
    for (const std::string& name : w.unread())
      if (case_.kind != "refused" || case_.given.all().contains(name))
        throw unbuilt(fmt::format("the layout of '{}' says nothing here", name));
  if (expected_.all().empty() && !bitwise_ && case_.kind != "refused") throw unbuilt("nothing is expected");
}

task reading::in_each_world(const std::function<body(world&)>& make) {
  if (worlds_.empty()) throw unbuilt("a case without worlds");
  std::vector<run> runs;
  task t;
  const auto add = [&](world& w, const std::string& where) {
    const body does = make(w);
    t.workers = std::max(t.workers, std::max(w.workers(), world_of(w.mesh())));
    for (const tested& e : elements_)
      for (const index_t chunk : w.chunks()) runs.push_back({w.mesh(), does, e.element, e.within, chunk, where});
  };
  if (bitwise_ && !refused()) {
    world one = worlds_.front().alone();
    add(one, "alone");
  }
  for (std::size_t i = 0; i < worlds_.size(); ++i) add(worlds_[i], fmt::format("world {}", i));
  all_read();
  const bool must_refuse = refused();
  t.run = [runs, mismatches = mismatches_, bitwise = bitwise_, must_refuse](const team_handle& all) {
    if (!mismatches.empty()) return verdict{result::fail, static_cast<double>(mismatches.size()), mismatches.front()};
    return judge(all, runs, bitwise, must_refuse);
  };
  return t;
}

task reading::planned() {
  all_read();
  const bool must_refuse = refused();
  task t;
  t.run = [mismatches = mismatches_, must_refuse](const team_handle&) {
    if (must_refuse) return verdict{result::fail, 0, "what must be refused is accepted"};
    if (mismatches.empty()) return verdict{};
    return verdict{result::fail, static_cast<double>(mismatches.size()), mismatches.front()};
  };
  return t;
}

}  // namespace conformance::training
