#pragma once

#include <tessera/nn/state_dict.hpp>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

namespace tessera::detail {

inline const char* file_type(element e) {
  constexpr const char* names[]{"F64", "F32", "I64", "I32", "I16", "I8", "U8", "BOOL", "F16", "BF16", "C64", "C128", "U16", "U32", "U64"};
  return names[static_cast<int>(e)];
}

inline element element_in_file(const std::string& name) {
  for (int e = 0; e < number_of_elements; ++e)
    if (name == file_type(static_cast<element>(e))) return static_cast<element>(e);
  throw error(refusal{code::file_altered});
}

/// FNV-1a over the entries of the header and the data, so that neither can change unseen.
inline std::string checksum(const std::string& entries, const char* data, std::size_t size) {
  std::uint64_t h = 14695981039346656037u;
  const auto add = [&](const char* from, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) h = (h ^ static_cast<unsigned char>(from[i])) * 1099511628211u;
  };
  add(entries.data(), entries.size());
  add(data, size);
  return fmt::format("{:016x}", h);
}

/// Throws on every worker of the team what the first worker with a failure met, so none goes on alone.
inline void fail_together(const team_handle& team, const refusal& mine, const std::string& where) {
  if (team->inside())
    for (const std::uint64_t theirs : team->collect(static_cast<std::uint64_t>(mine.code)))
      if (mine.ok() && theirs != 0) throw error(refusal(static_cast<code>(theirs)), where);
  check(mine, where);
}

struct file_contents {
  refusal why;
  nn::state_dict state;
};

inline file_contents read_file(const std::filesystem::path& path) {
  file_contents out;
  std::ifstream file(path, std::ios::binary);
  if (!file) return {refusal{code::file_missing}, {}};
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::uint64_t length = 0;
  if (bytes.size() < 8) return {refusal{code::file_truncated, 8, bytes.size()}, {}};
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
  if (length > (std::uint64_t{1} << 32)) return {refusal{code::file_not_ours}, {}};
  if (bytes.size() < 8 + length) return {refusal{code::file_truncated, 8 + length, bytes.size()}, {}};
  const auto header = nlohmann::json::parse(bytes.begin() + 8, bytes.begin() + 8 + static_cast<long>(length), nullptr, false);
  if (!header.is_object() || !header.contains("__metadata__") || !header["__metadata__"].contains("fnv1a64"))
    return {refusal{code::file_not_ours}, {}};
  const char* data = bytes.data() + 8 + length;
  const std::size_t size = bytes.size() - 8 - length;
  std::size_t expected = 0;
  try {
    nlohmann::json entries = header;
    entries.erase("__metadata__");
    for (const auto& [key, entry] : entries.items())
      expected = std::max(expected, entry.at("data_offsets").at(1).get<std::size_t>());
    if (size < expected) return {refusal{code::file_truncated, 8 + length + expected, bytes.size()}, {}};
    if (checksum(entries.dump(), data, size) != header["__metadata__"]["fnv1a64"].get<std::string>())
      return {refusal{code::file_altered}, {}};
    for (const auto& [key, entry] : entries.items()) {
      const auto from = entry.at("data_offsets").at(0).get<std::size_t>();
      at::Tensor t = at::empty(entry.at("shape").get<std::vector<index_t>>(), scalar_type(element_in_file(entry.at("dtype"))));
      if (from > size || t.nbytes() > size - from) return {refusal{code::file_altered}, {}};
      std::memcpy(t.data_ptr(), data + from, t.nbytes());
      out.state[key] = t;
    }
  } catch (const std::exception&) {
    return {refusal{code::file_altered}, {}};
  }
  return out;
}

}  // namespace tessera::detail

namespace tessera::nn {

/// Writes a state dict as one file: eight bytes of length, a JSON header, raw tensors (the safetensors format), with a checksum.
///
/// It is written beside the path and renamed, so nothing half-written is left.
inline void write_state(const std::filesystem::path& path, const state_dict& state) {
  nlohmann::json header = nlohmann::json::object();
  std::string data;
  for (const auto& [key, given] : state) {
    const at::Tensor t = given.contiguous();
    const std::size_t from = data.size();
    data.append(static_cast<const char*>(t.data_ptr()), t.nbytes());
    header[key] = {{"dtype", detail::file_type(detail::element_of_scalar(t.scalar_type()))},
                   {"shape", t.sizes().vec()},
                   {"data_offsets", {from, data.size()}}};
  }
  header["__metadata__"] = {{"fnv1a64", detail::checksum(header.dump(), data.data(), data.size())}};
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::filesystem::path beside = path.string() + ".part";
  {
    std::ofstream file(beside, std::ios::binary | std::ios::trunc);
    std::uint64_t length = text.size();
    for (int i = 0; i < 8; ++i, length >>= 8) file.put(static_cast<char>(length & 0xff));
    file << text << data;
    if (!file.flush()) {
      std::error_code ignored;
      std::filesystem::remove(beside, ignored);
      throw error(refusal{code::file_missing}, path.string());
    }
  }
  std::filesystem::rename(beside, path);
}

/// Saves the parameters of a network: one file, serial keys, full tensors. All workers call it, the first one writes.
template <class Network>
void save(const Network& net, const std::filesystem::path& path) {
  const state_dict state = state_of(net);
  refusal mine;
  if (net.team()->inside() && net.team()->mesh().number(net.team()->at()) == 0) {
    try {
      write_state(path, state);
    } catch (const std::exception&) {
      mine = refusal{code::file_missing};
    }
  }
  detail::fail_together(net.team(), mine, path.string());
}

/// Loads parameters that `save` wrote, whatever partition wrote them. All workers call it; a bad file is one error on all.
template <class Network>
void load(Network& net, const std::filesystem::path& path) {
  detail::file_contents file = detail::read_file(path);
  detail::fail_together(net.team(), file.why, path.string());
  assign(net, file.state);
}

}  // namespace tessera::nn
