#pragma once

#include <tessera/nn/file.hpp>
#include <tessera/nn/together.hpp>
#include <tessera/nn/weights_file.hpp>

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

/// The header of a safetensors file. What goes deeper than one, lists more than a shape, or names something twice, is none.
inline nlohmann::json header_of(const std::string& text) {
  using nlohmann::json;
  bool sound = text.starts_with('{') && text.find('\0') == text.npos;
  int listed = 0;
  std::set<std::string> keys[4];  // of the object that is open at each depth
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start && depth < 3) keys[depth + 1].clear();
    listed = event == json::parse_event_t::value ? listed + 1 : 0;
    sound = sound && depth <= 3 && listed <= max_dimensions + 1;
    if (sound && event == json::parse_event_t::key) sound = keys[depth].insert(parsed.get<std::string>()).second;
    return sound;
  };
  json header = json::parse(text, watch, false);
  sound = sound && header.is_object();
  if (sound && header.contains("__metadata__")) {
    const json& words = header["__metadata__"];
    sound = words.is_object() && std::all_of(words.begin(), words.end(), [](const json& value) { return value.is_string(); });
  }
  return sound ? header : json();
}

/// A tensor of a weights file: its place in the data, and what it is.
struct stored_tensor {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::string key;
  element type = element::float32;
  std::vector<index_t> shape;
};

/// Reads an entry of the header; refuses one whose shape does not fill its place.
inline stored_tensor stored_tensor_of(const std::string& key, const nlohmann::json& entry) {
  const auto insist = [&](bool holds) { tessera::check(holds ? refusal{} : refusal{code::file_altered}, key); };
  const auto is_list = [&](const char* name) {
    return entry.contains(name) && entry[name].is_array() &&
           std::all_of(entry[name].begin(), entry[name].end(), [](const auto& n) { return n.is_number_unsigned(); });
  };
  insist(entry.is_object() && entry.size() == 3 && is_list("shape") && is_list("data_offsets") && entry["data_offsets"].size() == 2 &&
         entry.contains("dtype") && entry["dtype"].is_string() && entry["shape"].size() <= max_dimensions);
  stored_tensor t{entry["data_offsets"][0], entry["data_offsets"][1], key, {}, {}};
  const std::string type = entry["dtype"];
  int e = 0;
  while (e < number_of_elements && type != file_type(static_cast<element>(e))) ++e;
  if (e == number_of_elements) throw error(refusal{code::file_of_other_elements}, key + " is " + type);
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

/// The tensors of a header in the order of their places, which have neither holes nor overlaps between them.
inline std::vector<stored_tensor> stored_tensors_of(const nlohmann::json& entries) {
  std::vector<stored_tensor> all;
  for (const auto& [key, entry] : entries.items()) all.push_back(stored_tensor_of(key, entry));
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return std::tie(a.from, a.to) < std::tie(b.from, b.to); });
  std::uint64_t end = 0;
  for (const stored_tensor& t : all) {
    if (t.from != end) throw error(refusal{code::file_altered}, t.key);
    end = t.to;
  }
  return all;
}

/// A state dict under other keys: each first of a pair becomes its second.
inline nn::state_dict under_other_keys(nn::state_dict state, const std::vector<std::pair<std::string, std::string>>& pairs, const std::string& from) {
  nn::state_dict moved;
  std::string wrong;
  const auto add = [&](const std::string& what) { wrong += (wrong.empty() ? "" : "; ") + what; };
  for (const auto& [old, fresh] : pairs) {
    auto entry = state.extract(old);
    if (entry.empty()) add(old + " is not there, or was renamed before");
    else if (!moved.emplace(fresh, entry.mapped()).second) add(fresh + " is there twice");
  }
  state.merge(moved);
  for (const auto& left : moved) add(left.first + " is there twice");
  if (!wrong.empty()) throw error(refusal{code::nothing_renamed}, from + wrong);
  return state;
}

/// Throws on every worker of the team unless all name the same path and the same keys.
inline void agree_on_file(team_state& team, const std::filesystem::path& path, const nn::renamed& names) {
  std::string all = path.native();
  for (const auto& [foreign, own] : names.keys) all += fmt::format("\n{}\n{}", foreign, own);
  team.agree(text(all.data(), static_cast<int>(all.size())).hash, "comparing paths", [&] { return fmt::format("{} {}", team.doing().what, path.native()); });
}

TESSERA_INLINE void save(const team_handle& team, const keyed_state& kept, const std::filesystem::path& path, const nn::renamed& names) {
  nn::state_dict state = state_of(kept, true);
  if (!team->inside()) return;
  agree_on_file(*team, path, names);
  agree_on_state(team, state, path.string() + ": ");
  std::vector<std::pair<std::string, std::string>> foreign;
  for (const auto& [theirs, own] : names.keys) foreign.emplace_back(own, theirs);
  together(team, code::file_not_written, [&] {
    state = under_other_keys(std::move(state), foreign, path.string() + ": ");
    if (team->mesh().number(team->at()) == 0) nn::write_state(path, state);
  });
}

TESSERA_INLINE void load(const team_handle& team, const keyed_state& kept, const std::filesystem::path& path, const nn::renamed& names) {
  agree_on_file(*team, path, names);
  nn::state_dict state;
  together(team, code::file_missing, [&] { state = under_other_keys(nn::read_state(path), names.keys, path.string() + ": "); });
  assign_from(team, kept, state, path.string() + ": ");
}

}  // namespace tessera::detail

namespace tessera::nn {

TESSERA_INLINE state_dict read_state(const std::filesystem::path& path) {
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
  const nlohmann::json words = header.value("__metadata__", nlohmann::json::object());
  header.erase("__metadata__");

  std::vector<td::stored_tensor> tensors;
  try {
    tensors = td::stored_tensors_of(header);
  } catch (const error& e) {
    throw e.at(path.string() + ": " + e.where());
  }
  const std::uint64_t end = tensors.empty() ? 0 : tensors.back().to;
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
  if (words.value("fnv1a64", found.text()) != found.text()) refuse(code::file_altered);
  return state;
}

TESSERA_INLINE void write_state(const std::filesystem::path& path, const state_dict& state) {
  namespace td = tessera::detail;
  nlohmann::json header = nlohmann::json::object();
  std::vector<at::Tensor> tensors;
  std::uint64_t end = 0;
  for (const auto& [key, given] : state) {
    if (!td::readable(given) || key == "__metadata__")
      throw error(refusal{code::file_not_written}, fmt::format("{}: {} is {}", path.string(), key, td::described_tensor(given)));
    const at::Tensor& t = tensors.emplace_back(td::as_stored(given.detach()).cpu().contiguous());
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

}  // namespace tessera::nn
