#pragma once

#include <tessera/nn/state_dict.hpp>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

namespace tessera::detail {

inline const char* file_type(element e) {
  constexpr const char* names[]{"F64", "F32", "I64", "I32", "I16", "I8", "U8", "BOOL"};
  return names[static_cast<int>(e)];
}

inline std::string checksum(const char* data, std::size_t size) {
  std::uint64_t h = 14695981039346656037u;
  for (std::size_t i = 0; i < size; ++i) h = (h ^ static_cast<unsigned char>(data[i])) * 1099511628211u;
  return fmt::format("{:016x}", h);
}

/// Throws on every worker of the team what the first worker with a failure met, so none goes on alone.
inline void fail_together(const team_handle& team, const refusal& mine, const std::string& where) {
  if (team->inside()) {
    layout own;
    own.mesh = team->mesh();
    dimension d;
    d.extent = team->mesh().size();
    own.dims.push(d);
    own.roles.resize(own.mesh.axes.count);
    layout every = own;
    for (int a = 0; a < own.mesh.axes.count; ++a) own.cut_by(0, a);
    const at::NoGradGuard no_record;
    const at::Tensor codes = change_layout(team, own, every, at::full({1}, static_cast<index_t>(mine.code), at::kLong));
    const at::Tensor bad = codes.nonzero();
    if (mine.ok() && bad.numel() > 0)
      throw error(refusal(static_cast<code>(codes[bad[0].item<index_t>()].item<index_t>())), where);
  }
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
    for (const auto& [key, entry] : header.items())
      if (key != "__metadata__") expected = std::max(expected, entry.at("data_offsets").at(1).get<std::size_t>());
    if (size < expected) return {refusal{code::file_truncated, 8 + length + expected, bytes.size()}, {}};
    if (checksum(data, size) != header["__metadata__"]["fnv1a64"].get<std::string>()) return {refusal{code::file_altered}, {}};
    for (const auto& [key, entry] : header.items()) {
      if (key == "__metadata__") continue;
      element type = element::float64;
      while (entry.at("dtype") != file_type(type) && type != element::boolean) type = static_cast<element>(static_cast<int>(type) + 1);
      const auto shape = entry.at("shape").get<std::vector<index_t>>();
      at::Tensor t = at::empty(shape, scalar_type(type));
      const auto from = entry.at("data_offsets").at(0).get<std::size_t>();
      if (from + static_cast<std::size_t>(t.nbytes()) > size) return {refusal{code::file_altered}, {}};
      std::memcpy(t.data_ptr(), data + from, t.nbytes());
      out.state[key] = t;
    }
  } catch (const nlohmann::json::exception&) {
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
  nlohmann::ordered_json header;
  std::string data;
  for (const auto& [key, given] : state) {
    const at::Tensor t = given.contiguous();
    const std::size_t from = data.size();
    data.append(static_cast<const char*>(t.data_ptr()), t.nbytes());
    header[key] = {{"dtype", detail::file_type(detail::element_of_scalar(t.scalar_type()))},
                   {"shape", t.sizes().vec()},
                   {"data_offsets", {from, data.size()}}};
  }
  header["__metadata__"] = {{"fnv1a64", detail::checksum(data.data(), data.size())}};
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::filesystem::path beside = path.string() + ".part";
  {
    std::ofstream file(beside, std::ios::binary | std::ios::trunc);
    std::uint64_t length = text.size();
    for (int i = 0; i < 8; ++i, length >>= 8) file.put(static_cast<char>(length & 0xff));
    file << text << data;
    if (!file.flush()) throw error(refusal{code::file_missing}, path.string());
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
