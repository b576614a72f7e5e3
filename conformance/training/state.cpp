#include "parameter_set.hpp"
#include "serial_model.hpp"
#include "subjects.hpp"

#include <tessera/nn/file/weights_file.hpp>
#include <tessera/nn/serial/model_parts.hpp>
#include <tessera/tensor/memory/memory_count.hpp>

#include <unistd.h>

#include <atomic>

namespace conformance::training {
namespace {

/// A file under a name that all workers of a team know, which the first one removes.
class common_file {
 public:
  explicit common_file(const team_handle& team) : first_(team->mesh().number(team->at()) == 0) {
    static std::atomic<int> so_far{0};
    const std::string mine = fmt::format("conformance-{}-{}.safetensors", ::getpid(), ++so_far);
    path_ = std::filesystem::temp_directory_path() / team->collect_text(mine).front();
  }
  ~common_file() {
    std::error_code nobody_asks;
    if (first_) std::filesystem::remove(path_, nobody_asks);
  }
  common_file(const common_file&) = delete;
  common_file& operator=(const common_file&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Its bytes, as each worker reads them.
  at::Tensor bytes() const {
    std::ifstream in(path_, std::ios::binary);
    const std::string all((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    at::Tensor bytes = at::empty({static_cast<index_t>(all.size())}, at::kByte);
    std::copy(all.begin(), all.end(), bytes.data_ptr<std::uint8_t>());
    return bytes;
  }

 private:
  bool first_;
  std::filesystem::path path_;
};

/// A layer of the case's model.
struct kept_layer {
  serial_layer layer;
  std::string prefix;

  std::string key(const std::string& name) const { return prefix + layer.key(name); }
};

std::vector<kept_layer> model_of(reading& c) {
  std::vector<kept_layer> all;
  const std::string prefix = c.has("prefix") ? c.given().text("prefix") + "." : "";
  for (const json& said : c.given().at("model")) all.push_back({read_layer(said), prefix});
  return all;
}

/// How all parameters lie, by key.
std::map<std::string, layout> lying_in(const std::vector<kept_layer>& model, const mesh_value& m) {
  std::map<std::string, layout> all;
  for (const kept_layer& l : model)
    for (const auto& [name, lies] : lying_cut(l.layer, l.layer.cut, m)) all.emplace(l.key(name), lies);
  return all;
}

/// Parameters that lie so, of zeros.
std::unique_ptr<parameter_set> zeros_lying(const attempt& a, const std::map<std::string, layout>& lying) {
  auto all = std::make_unique<parameter_set>(a.team);
  for (const auto& [key, lies] : lying) all->add(key, lies, a.element, at::zeros(extents_of(lies), a.type()));
  return all;
}

/// Written in a world, read into other parameters, and written again. That the files of all worlds have the same bits
/// says that what is written in one is read in any other.
task written_and_read(reading& c) {
  const std::vector<kept_layer> model = model_of(c);
  std::map<std::string, recipe> begins;
  const std::string prefix = model.empty() ? "" : model.front().prefix;
  for (const auto& [name, said] : c.entries("parameters")) begins.emplace(prefix + name, said);
  const json shapes = c.expected("local_shapes");
  const json values = c.expected("values");
  const json keys = c.expected("keys");
  if (keys.size() != begins.size() || values.size() != begins.size()) throw unbuilt("keys of other parameters");
  return c.in_each_world([&](world& w) -> body {
    const std::map<std::string, layout> lying = lying_in(model, w.mesh());
    if (lying.size() != begins.size()) throw unbuilt("other parameters than those of the model");
    const std::optional<std::size_t> place = c.number_of(w);
    return [=](attempt& a) {
      parameter_set net(a.team);
      for (const auto& [key, lies] : lying) {
        const nn::parameter& p = net.add(key, lies, a.element, begins.at(key).whole().to(a.type()));
        if (extents_of(lies) != keys.at(key).get<integers>()) a.fail(key + " has another shape");
        const auto worker = static_cast<std::size_t>(a.team->mesh().number(a.team->at()));
        const auto mine = p.stored().local().sizes().vec();
        if (place && mine != shapes.at(*place).at(key).at(worker).get<integers>())
          a.fail(fmt::format("{} has the shape {} here", key, json(mine).dump()));
      }
      const common_file first(a.team);
      nn::save(net, first.path());
      const std::unique_ptr<parameter_set> other = zeros_lying(a, lying);
      nn::load(*other, first.path());
      other->each_parameter([&](const nn::parameter& p) {
        a.compare(p.key(), detach(p.stored()), reading::numbers_of(values.at(p.key())));
      });
      const common_file second(a.team);
      nn::save(*other, second.path());
      a.team->collect_text("");  // the first worker has written
      const at::Tensor bytes = first.bytes();
      if (!at::equal(bytes, second.bytes())) a.fail("what was read is written otherwise");
      a.compare_whole("the file", bytes, {});
      a.team->collect_text("");  // all have read
    };
  });
}

/// A file of other tensors than the model's.
task read_of_others(reading& c) {
  const std::vector<kept_layer> model = model_of(c);
  nn::state_dict file;
  for (const auto& [key, shape] : c.entries("file")) file[key] = at::zeros(shape.get<integers>(), at::kDouble);
  return c.in_each_world([&](world& w) -> body {
    const std::map<std::string, layout> lying = lying_in(model, w.mesh());
    return [=](attempt& a) {
      const std::unique_ptr<parameter_set> net = zeros_lying(a, lying);
      const common_file at(a.team);
      if (a.team->mesh().number(a.team->at()) == 0) nn::write_state(at.path(), file);
      a.team->collect_text("");
      nn::load(*net, at.path());
    };
  });
}

/// What the worker that writes takes of memory beyond its parts.
task memory_of(reading& c) {
  const std::vector<kept_layer> model = model_of(c);
  const std::vector<std::int64_t> most = c.expected("bytes_at_most").get<std::vector<std::int64_t>>();
  if (most.size() != c.worlds().size()) throw unbuilt("bytes of other worlds");
  return c.in_each_world([&](world& w) -> body {
    const std::map<std::string, layout> lying = lying_in(model, w.mesh());
    const std::int64_t may = most.at(c.number_of(w).value());
    return [=](attempt& a) {
      const std::unique_ptr<parameter_set> net = zeros_lying(a, lying);
      const common_file at(a.team);
      const memory_count taken;
      nn::save(*net, at.path());
      if (taken.peak() > may) a.fail(fmt::format("{} bytes are held, not {} at most", taken.peak(), may));
    };
  });
}

/// The part of each worker of tensors that every one has.
task taken_from_full(reading& c) {
  std::map<std::string, recipe> full;
  for (const auto& [name, said] : c.entries("full")) full.emplace(name, said);
  const json local = c.expected("local");
  return c.in_each_world([&](world& w) -> body {
    std::map<std::string, layout> lying;
    for (const auto& [name, r] : full) lying[name] = w.lying(name, r.shape());
    return [=](attempt& a) {
      for (const auto& [name, lies] : lying) {
        layout everywhere = whole(lies.mesh, extents_of(lies));
        for (engine::axis_placement& r : everywhere.placements) r = {placement::invariant};
        const at::Tensor part = to(lies, a.given(full.at(name), everywhere)).local();
        const numbers expected(local.at(name).at(static_cast<std::size_t>(a.team->mesh().number(a.team->at()))));
        a.compare_box(name, part.numel() == volume_of(expected.shape()) ? part.reshape(expected.shape()) : part,
                      expected);
      }
    };
  });
}

/// The names of files that workers at some coordinates write of their parts.
task names_of_parts(reading& c) {
  const json coordinates = c.given().at("coordinates");
  json names = json::array();
  for (world& w : c.worlds()) {
    if (!c.number_of(w)) continue;
    const json at = coordinates.at(*c.number_of(w));
    const auto extent = [&](const char* axis) {
      const int a = w.mesh().find(kept_name(axis));
      return a < 0 ? 1 : w.mesh().axes[a].extent;
    };
    const nn::model_parts parts{.tensor = extent("tensor"), .pipe = extent("pipe")};
    const auto path = parts.path_of("folder/model.pth", at.value("tensor", 0), at.value("pipe", 0));
    if (path.parent_path() != "folder") throw unbuilt("a file in another folder");
    names.push_back(path.filename().string().substr(std::string("model").size()));
  }
  c.compare("names", names);
  return c.planned();
}

}  // namespace

/// State by serial keys: written and read in any world, refused, taken from whole tensors.
task state(reading& c) {
  if (c.has("coordinates")) return names_of_parts(c);
  if (c.has("full")) return taken_from_full(c);
  if (c.kind() == "memory") return memory_of(c);
  if (c.has("file")) return read_of_others(c);
  return written_and_read(c);
}

}  // namespace conformance::training
