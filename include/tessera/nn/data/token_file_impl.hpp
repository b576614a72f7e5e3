#pragma once

#include <tessera/nn/data/token_file.hpp>
#include <tessera/nn/file/atomic_file.hpp>
#include <tessera/nn/file/throw_on_all.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace tessera::detail {

/// A regular file in memory, to be read.
class mapped_file : public regular_file {
 public:
  explicit mapped_file(const std::filesystem::path& path) : regular_file(path) {
    if (size() == 0) return;  // nothing can be mapped
    void* const pages = ::mmap(nullptr, size(), PROT_READ, MAP_PRIVATE, descriptor_, 0);
    if (pages == MAP_FAILED) refuse_file(code::file_missing, path_, errno);
    pages_ = static_cast<const std::byte*>(pages);
  }
  ~mapped_file() {
    if (pages_ != nullptr) ::munmap(const_cast<std::byte*>(pages_), size());
  }

  const std::byte* data() const { return pages_; }

 private:
  const std::byte* pages_ = nullptr;
};

/// n whole numbers of a type that lie end to end at any address.
template <class Stored>
void read_tokens(const std::byte* from, index_t n, std::int64_t* to) {
  for (index_t i = 0; i < n; ++i, from += sizeof(Stored)) {
    Stored token;
    std::memcpy(&token, from, sizeof token);
    to[i] = static_cast<std::int64_t>(token);
  }
}

inline auto token_reader(at::ScalarType element) {
  switch (element) {
    case at::kUInt16: return &read_tokens<std::uint16_t>;
    case at::kUInt32: return &read_tokens<std::uint32_t>;
    case at::kInt: return &read_tokens<std::int32_t>;
    case at::kLong: return &read_tokens<std::int64_t>;
    default: throw error(refusal{code::no_such_tokens}, at::toString(element));
  }
}

}  // namespace tessera::detail

namespace tessera::nn {

TESSERA_INLINE token_file::token_file(const team_handle& team, const std::filesystem::path& path, const options& how,
                                      call_site at)
    : how_(how) {
  const tessera::engine::scoped_context now(*team, {.why = purpose::state, .name = "opening a token file", .at = at});
  if (how_.stride == 0) how_.stride = how_.length;
  const auto open = [&] {
    static_cast<void>(tessera::detail::token_reader(how_.element));
    if (how_.length < 1 || how_.stride < 1 || how_.header_bytes < 0)
      throw error(refusal{code::no_such_tokens}, path.string());
    file_ = std::make_shared<const tessera::detail::mapped_file>(path);
    const auto bytes = static_cast<index_t>(file_->size()) - how_.header_bytes;
    const auto each = static_cast<index_t>(at::elementSize(how_.element));
    tokens_ = bytes / each;
    if (bytes < 0 || bytes % each != 0)
      throw error(
          refusal{code::file_truncated, how_.header_bytes + (bytes < 0 ? 0 : tokens_ + 1) * each, file_->size()},
          path.string());
    if (tokens_ - 1 < how_.length)  // the last target is one further
      throw error(refusal{code::too_few_tokens, how_.length, std::max<index_t>(tokens_ - 1, 0)}, path.string());
    samples_ = static_cast<std::size_t>((tokens_ - how_.length - 1) / how_.stride + 1);
  };
  if (!team->inside()) {
    open();
    return;
  }
  tessera::detail::throw_on_all(team, code::file_missing, open);
  tessera::engine::fingerprint f;
  f << tokens_ << how_.length << how_.stride;
  team->agree(f.value(), "opening a token file", [&] {
    return fmt::format("opening {} of {} tokens, {} samples of {}", path.string(), tokens_, samples_, how_.length);
  });
}

TESSERA_INLINE torch::data::Example<> token_file::get_batch(at::ArrayRef<std::size_t> numbers) {
  const auto rows = static_cast<index_t>(numbers.size());
  at::Tensor inputs = at::empty({rows, how_.length}, at::kLong), targets = at::empty_like(inputs);
  const auto read = tessera::detail::token_reader(how_.element);
  const auto each = static_cast<index_t>(at::elementSize(how_.element));
  const std::byte* const tokens = file_->data() + how_.header_bytes;
  std::int64_t *in = inputs.data_ptr<std::int64_t>(), *out = targets.data_ptr<std::int64_t>();
  for (const std::size_t i : numbers) {
    TORCH_CHECK_INDEX(i < samples_, "sample ", i, " of ", samples_);
    const std::byte* const from = tokens + static_cast<index_t>(i) * how_.stride * each;
    read(from, how_.length, in);
    read(from + each, how_.length, out);
    in += how_.length;
    out += how_.length;
  }
  return {inputs, targets};
}

}  // namespace tessera::nn
