#include "subjects.hpp"

#include <tessera/nn/parameter/parameter.hpp>

#include <range/v3/view/iota.hpp>
#include <range/v3/view/zip.hpp>

namespace conformance::training {
namespace {

/// Numbers of an initialiser, each by its name; one that nobody asked for is unknown.
class options {
 public:
  explicit options(const json& said) : said_(said.is_null() ? json::object() : said) {}
  double number(const char* name, double otherwise) {
    read_.insert(name);
    return said_.value(name, otherwise);
  }
  std::string word(const char* name, const char* otherwise) {
    read_.insert(name);
    return said_.value(name, std::string(otherwise));
  }
  void all_read() const {
    for (const auto& [name, value] : said_.items())
      if (read_.count(name) == 0)
        throw unbuilt(fmt::format("the option {} = {} of an initialiser", name, value.dump()));
  }

 private:
  json said_;
  std::set<std::string> read_;
};

initial_value named(const std::string& method, options& o) {
  const auto fan = [&] {
    const std::string mode = o.word("mode", "fan_in");
    if (mode != "fan_in" && mode != "fan_out") throw unbuilt(fmt::format("the mode '{}'", mode));
    return mode == "fan_in" ? init::fan::in : init::fan::out;
  };
  if (method == "zeros") return init::zeros();
  if (method == "ones") return init::ones();
  if (method == "constant") return init::constant(o.number("value", 0));
  if (method == "eye") return init::eye();
  if (method == "dirac") return init::dirac(static_cast<index_t>(o.number("groups", 1)));
  if (method == "uniform") return init::uniform(o.number("low", 0), o.number("high", 1));
  if (method == "normal") return init::normal(o.number("mean", 0), o.number("std", 1));
  if (method == "truncated_normal")
    return init::truncated_normal(o.number("mean", 0), o.number("std", 1), o.number("low", -2), o.number("high", 2));
  if (method == "xavier_uniform") return init::xavier_uniform(o.number("gain", 1));
  if (method == "xavier_normal") return init::xavier_normal(o.number("gain", 1));
  if (method == "kaiming_uniform") return init::kaiming_uniform(o.number("slope", 0), fan());
  if (method == "kaiming_normal") return init::kaiming_normal(o.number("slope", 0), fan());
  throw unbuilt(fmt::format("the initialiser '{}'", method));
}

/// One initialiser, and what its values must be like.
struct method {
  std::string name;
  integers shape;
  initial_value begins;
  std::optional<numbers> values;
  std::map<std::string, double> like;
};

void judge(attempt& a, const method& m, const at::Tensor& x, double spread) {
  const auto wanted = [&](const char* name) { return m.like.find(name); };
  const auto far = [&](const char* name, double found, double may) {
    if (const auto w = wanted(name); w != m.like.end() && std::abs(found - w->second) > may)
      a.fail(fmt::format("{}: {} is {}, not {}", m.name, name, found, w->second));
  };
  const double std = wanted("std") == m.like.end() ? 0 : wanted("std")->second;
  far("mean", x.mean().item<double>(), spread * std);
  far("std", x.std().item<double>(), spread * std);
  if (const auto w = wanted("low"); w != m.like.end() && x.min().item<double>() < w->second)
    a.fail(m.name + ": a value is too low");
  if (const auto w = wanted("high"); w != m.like.end() && x.max().item<double>() > w->second)
    a.fail(m.name + ": a value is too high");
}

}  // namespace

/// First values of parameters: the same bits however they are cut.
task initial_values(reading& c) {
  const json wanted = c.expected("methods");
  const double spread = c.check_number("spread", 0);
  std::vector<method> all;
  for (const json& said : c.given().at("methods")) {
    method m{said.at("method").get<std::string>(), said.at("shape").get<integers>(), {}, {}, {}};
    options o(said.contains("options") ? said.at("options") : json());
    m.begins = named(m.name, o);
    o.all_read();
    for (const auto& [name, value] : wanted.at(all.size()).items()) {
      if (name == "values") m.values = numbers(value);
      else if (name == "mean" || name == "std" || name == "low" || name == "high") m.like[name] = value.get<double>();
      else throw unbuilt(fmt::format("the expected number '{}'", name));
    }
    all.push_back(m);
  }
  return c.in_each_world([=](world& w) -> body {
    std::vector<layout> lying;
    for (const method& m : all) lying.push_back(w.lying_first("values", m.shape));
    return [=](attempt& a) {
      for (const auto& [i, m, lies] : ranges::views::zip(ranges::views::iota(0), all, lying)) {
        parameter_value of;
        of.name = "values";
        of.stored = of.used = lies;
        of.initial = m.begins;
        const nn::parameter p(a.team, fmt::format("{}.values", i), of, a.element, seed{7});
        const tensor<dyn> x = detach(p.stored());
        a.compare(fmt::format("{} {}", m.name, i), x, m.values);
        judge(a, m, full_tensor(x).to(at::kCPU), spread);
      }
    };
  });
}

}  // namespace conformance::training
