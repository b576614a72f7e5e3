#pragma once

#include <tessera/nn/file.hpp>
#include <tessera/nn/state_dict.hpp>

#include <nlohmann/json.hpp>

#include <set>

namespace tessera::detail {

inline const char* file_type(element e) {
  constexpr const char* names[]{"F64", "F32", "I64", "I32", "I16", "I8", "U8", "BOOL", "F16", "BF16", "C64", "C128", "U16", "U32", "U64"};
  return names[static_cast<int>(e)];
}

/// FNV-1a over the entries of the header and the data, so that neither can change unseen.
class checksum {
 public:
  void add(const void* from, std::uint64_t n) {
    const auto* byte = static_cast<const unsigned char*>(from);
    for (std::uint64_t i = 0; i < n; ++i) value_ = (value_ ^ byte[i]) * 1099511628211u;
  }
  void add(const std::string& text) { add(text.data(), text.size()); }
  std::string text() const { return fmt::format("{:016x}", value_); }

 private:
  std::uint64_t value_ = 14695981039346656037u;
};

/// The header of a weights file. One that goes deeper than ours, or names something twice, is none.
inline nlohmann::json header_of(const std::string& text) {
  using nlohmann::json;
  bool sound = true;
  std::set<std::string> keys[4];  // of the object that is open at each depth
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    sound = sound && depth <= 3;
    if (!sound) return false;
    if (event == json::parse_event_t::object_start && depth < 3) keys[depth + 1].clear();
    if (event == json::parse_event_t::key) sound = keys[depth].insert(parsed.get<std::string>()).second;
    return sound;
  };
  const json header = json::parse(text, watch, false);
  const bool ours = sound && header.is_object() && header.contains("__metadata__") && header["__metadata__"].is_object() &&
                    header["__metadata__"].contains("fnv1a64") && header["__metadata__"]["fnv1a64"].is_string();
  return ours ? header : json();
}

/// A tensor of a weights file: its place in the data, and what it is.
struct stored_tensor {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::string key;
  element type = element::float32;
  std::vector<index_t> shape;
};

/// Reads an entry of the header; throws `file_altered` unless its shape fills its place.
inline stored_tensor stored_tensor_of(const std::string& key, const nlohmann::json& entry) {
  const auto insist = [](bool holds) {
    if (!holds) throw error(refusal{code::file_altered});
  };
  const auto is_list = [&](const char* name) {
    if (!entry.contains(name) || !entry[name].is_array()) return false;
    for (const auto& n : entry[name])
      if (!n.is_number_unsigned()) return false;
    return true;
  };
  insist(entry.is_object() && entry.size() == 3 && is_list("shape") && is_list("data_offsets") && entry["data_offsets"].size() == 2 &&
         entry.contains("dtype") && entry["dtype"].is_string() && entry["shape"].size() <= max_dimensions);
  stored_tensor t{entry["data_offsets"][0], entry["data_offsets"][1], key, {}, {}};
  int e = 0;
  while (e < number_of_elements && entry["dtype"] != file_type(static_cast<element>(e))) ++e;
  insist(e < number_of_elements);
  t.type = static_cast<element>(e);
  index_t bytes = bytes_of(t.type);
  bool empty = false;
  for (const auto& n : entry["shape"]) {
    const auto extent = n.get<std::uint64_t>();
    insist(extent <= static_cast<std::uint64_t>(INT64_MAX) &&
           !__builtin_mul_overflow(bytes, std::max<index_t>(1, static_cast<index_t>(extent)), &bytes));
    empty = empty || extent == 0;
    t.shape.push_back(static_cast<index_t>(extent));
  }
  insist(t.from <= t.to && t.to - t.from == (empty ? 0 : static_cast<std::uint64_t>(bytes)));
  return t;
}

/// Throws on every worker of the team unless all name the same path.
inline void agree_on_path(team_state& team, const std::filesystem::path& path) {
  const std::string& name = path.native();
  team.agree(text(name.data(), static_cast<int>(name.size())).hash, "comparing paths", [&] { return fmt::format("{} {}", team.doing().what, name); });
}

}  // namespace tessera::detail

namespace tessera::nn {

/// Reads a file that `write_state` wrote. Whatever else it finds is an error that names the path, and costs no more memory than
/// the file is long.
inline state_dict read_state(const std::filesystem::path& path) {
  namespace td = tessera::detail;
  constexpr std::uint64_t longest_header = 100'000'000;
  td::file file(path);
  const auto refuse = [&](const reason& why) { throw error(refusal{why}, path.string()); };
  unsigned char eight[8];
  file.expect(8);
  file.read(eight, 8);
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | eight[i];
  if (length > longest_header) refuse(code::file_not_ours);
  file.expect(8 + length);
  std::string text(length, ' ');
  file.read(text.data(), length);
  nlohmann::json header = td::header_of(text);
  if (header.is_null()) refuse(code::file_not_ours);
  const std::string sum = header["__metadata__"]["fnv1a64"];
  header.erase("__metadata__");

  std::vector<td::stored_tensor> tensors;
  std::uint64_t end = 0;
  try {
    for (const auto& [key, entry] : header.items()) tensors.push_back(td::stored_tensor_of(key, entry));
  } catch (const error&) {
    refuse(code::file_altered);
  }
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return std::tie(a.from, a.to) < std::tie(b.from, b.to); });
  for (const auto& t : tensors) {
    if (t.from != end) refuse(code::file_altered);
    end = t.to;
  }
  const std::uint64_t data = file.size() - 8 - length;
  if (data < end) throw error(refusal{code::file_truncated, 8 + length + end, file.size()}, path.string());
  if (data > end) refuse(code::file_altered);

  state_dict state;
  td::checksum found;
  found.add(header.dump());
  for (const auto& t : tensors) {
    const at::Tensor& values = state[t.key] = at::empty(t.shape, td::scalar_type(t.type));
    file.read(values.data_ptr(), t.to - t.from);
    found.add(values.data_ptr(), t.to - t.from);
  }
  if (found.text() != sum) refuse(code::file_altered);
  return state;
}

/// Writes a state dict as one file: eight bytes of length, a JSON header, raw tensors (the safetensors format), with a checksum.
///
/// It takes the place of an older one when it is whole, and leaves nothing behind when it cannot be written.
inline void write_state(const std::filesystem::path& path, const state_dict& state) {
  namespace td = tessera::detail;
  nlohmann::json header = nlohmann::json::object();
  std::vector<at::Tensor> tensors;
  std::uint64_t end = 0;
  for (const auto& [key, given] : state) {
    if (!td::readable(given) || key == "__metadata__")
      throw error(refusal{code::file_not_written}, fmt::format("{}: {} is {}", path.string(), key, td::described_tensor(given)));
    const at::Tensor& t = tensors.emplace_back(td::as_stored(given.detach()).contiguous());
    header[key] = {{"dtype", td::file_type(td::element_of_scalar(t.scalar_type()))},
                   {"shape", t.sizes().vec()},
                   {"data_offsets", {end, end + t.nbytes()}}};
    end += t.nbytes();
  }
  td::checksum sum;
  try {
    sum.add(header.dump());
  } catch (const nlohmann::json::exception& e) {  // a key that is no UTF-8
    throw error(refusal{code::file_not_written}, fmt::format("{}: {}", path.string(), e.what()));
  }
  for (const at::Tensor& t : tensors) sum.add(t.data_ptr(), t.nbytes());
  header["__metadata__"] = {{"fnv1a64", sum.text()}};
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  unsigned char eight[8];
  for (int i = 0; i < 8; ++i) eight[i] = static_cast<unsigned char>(static_cast<std::uint64_t>(text.size()) >> 8 * i);

  td::replacement file(path);
  file.write(eight, 8);
  file.write(text.data(), text.size());
  for (const at::Tensor& t : tensors) file.write(t.data_ptr(), t.nbytes());
  file.keep();
}

/// Saves the parameters of a network: one file, serial keys, full tensors. All workers call it with one path, and compare what they
/// have; the first one writes.
template <class Network>
void save(const Network& net, const std::filesystem::path& path, call_site at = call_site::here()) {
  const team_handle team = tessera::detail::team_of(net);
  const during now(*team, {.why = purpose::state, .what = "saving a network", .at = at});
  const state_dict state = state_of(net);
  if (!team->inside()) return;
  tessera::detail::agree_on_path(*team, path);
  tessera::detail::agree_on_state(team, state, path.string() + ": ");
  tessera::detail::together(team, code::file_not_written, [&] {
    if (team->mesh().number(team->at()) == 0) write_state(path, state);
  });
}

/// Loads parameters that `save` wrote, whatever partition wrote them. All workers call it with one path; a bad file is one error on
/// all.
template <class Network>
void load(Network& net, const std::filesystem::path& path, call_site at = call_site::here()) {
  const team_handle team = tessera::detail::team_of(net);
  if (!team->inside()) return;
  const during now(*team, {.why = purpose::state, .what = "loading a network", .at = at});
  tessera::detail::agree_on_path(*team, path);
  state_dict state;
  tessera::detail::together(team, code::file_missing, [&] { state = read_state(path); });
  tessera::detail::assign_from(net, state, path.string() + ": ");
}

}  // namespace tessera::nn
