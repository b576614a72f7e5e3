#pragma once

#include <tessera/comm/exchange/exchange_plan.hpp>

#include <nccl.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace tessera {

namespace engine {

/// How NCCL carries a plan: by sends and receives, or, where the plan is one, by a collective. A broadcast has its
/// root's place added.
enum class transfer_method : std::uint64_t { messages, all_gather, reduce_scatter, all_reduce, broadcast };

/// Numbers as NCCL adds them.
struct nccl_numbers {
  ncclDataType_t type;
  index_t of_each;  ///< complex numbers are two
};

/// NCCL's name of an element, if it has one.
inline std::optional<nccl_numbers> nccl_numbers_of(element e) {
  switch (e) {
    case element::float64: return nccl_numbers{ncclFloat64, 1};
    case element::float32: return nccl_numbers{ncclFloat32, 1};
    case element::float16: return nccl_numbers{ncclFloat16, 1};
    case element::bfloat16: return nccl_numbers{ncclBfloat16, 1};
    case element::complex64: return nccl_numbers{ncclFloat32, 2};
    case element::complex128: return nccl_numbers{ncclFloat64, 2};
    case element::int64: return nccl_numbers{ncclInt64, 1};
    case element::int32: return nccl_numbers{ncclInt32, 1};
    case element::int8: return nccl_numbers{ncclInt8, 1};
    case element::uint64: return nccl_numbers{ncclUint64, 1};
    case element::uint32: return nccl_numbers{ncclUint32, 1};
    case element::uint8: return nccl_numbers{ncclUint8, 1};
    default: return std::nullopt;
  }
}

/// NCCL's name of a combine of an element, if it has one: of complex numbers it has the sum alone.
inline std::optional<ncclRedOp_t> nccl_operation_of(combine with, element e) {
  if (with == combine::sum) return ncclSum;
  if (is_complex(e)) return std::nullopt;
  if (with == combine::prod) return ncclProd;
  if (with == combine::max) return ncclMax;
  if (with == combine::min) return ncclMin;
  return std::nullopt;
}

/// Whether NCCL combines terms of an element so.
inline bool nccl_knows(combine with, element e) { return nccl_numbers_of(e) && nccl_operation_of(with, e); }

}  // namespace engine

namespace detail {

/// Whether a transfer is all of a tensor of these extents.
inline bool is_whole(const box_transfer& l, const box_vector& extents) {
  return l.extents == extents && std::all_of(l.here.begin(), l.here.end(), [](index_t b) { return b == 0; });
}
/// Whether transfers are of each worker once, in their order.
inline bool of_each(const std::vector<box_transfer>& transfers, const std::vector<int>& workers) {
  return std::equal(transfers.begin(), transfers.end(), workers.begin(), workers.end(),
                    [](const box_transfer& l, int w) { return l.peer == w; });
}
/// Whether transfers are the equal parts of a tensor, in the order of memory.
inline bool are_parts(const std::vector<box_transfer>& transfers, const box_vector& extents) {
  region all{nullptr, element::uint8, extents, extents};
  all = all.packed_at(nullptr);
  const index_t n = all.count();
  const auto parts = static_cast<index_t>(transfers.size());
  if (n == 0 || n % parts != 0) return false;
  index_t begins = 0;
  for (const box_transfer& l : transfers) {
    index_t before = 0;
    for (int d = 0; d < l.here.count; ++d) before += l.here[d] * all.strides[d];
    region part = all;
    part.extents = l.extents;
    if (before != begins || part.count() != n / parts || !part.contiguous()) return false;
    begins += part.count();
  }
  return true;
}

}  // namespace detail

namespace engine {

/// How this worker would carry a plan; it is carried so if all of them say the same. `sums` says whether NCCL may add.
inline std::uint64_t transfer_method_of(const exchange_plan& plan, int rank, bool sums) {
  const auto number = [](transfer_method c, std::ptrdiff_t more = 0) {
    return static_cast<std::uint64_t>(c) + static_cast<std::uint64_t>(more);
  };
  const auto all_whole = [](const std::vector<box_transfer>& transfers, const box_vector& extents) {
    return count_of(extents) > 0 && std::all_of(transfers.begin(), transfers.end(),
                                                [&](const box_transfer& l) { return detail::is_whole(l, extents); });
  };
  const std::vector<int>& workers = plan.workers;
  if (workers.size() < 2) return number(transfer_method::messages);
  const bool to_each = detail::of_each(plan.sends, workers);
  const bool from_each = detail::of_each(plan.receives, workers);
  if (plan.fold) {
    const bool adds_all = sums && to_each && from_each && all_whole(plan.receives, plan.out);
    if (adds_all && detail::are_parts(plan.sends, plan.in)) return number(transfer_method::reduce_scatter);
    return number(adds_all && all_whole(plan.sends, plan.in) ? transfer_method::all_reduce : transfer_method::messages);
  }
  if (to_each && from_each && all_whole(plan.sends, plan.in) && detail::are_parts(plan.receives, plan.out))
    return number(transfer_method::all_gather);
  const auto broadcast_by = [&](int root) {
    return number(transfer_method::broadcast, std::find(workers.begin(), workers.end(), root) - workers.begin());
  };
  const auto others =
      std::count_if(plan.sends.begin(), plan.sends.end(), [&](const box_transfer& l) { return l.peer != rank; });
  if (others + 1 == static_cast<std::ptrdiff_t>(workers.size()) && all_whole(plan.sends, plan.in))
    return broadcast_by(rank);
  if (plan.sends.empty() && plan.receives.size() == 1 && all_whole(plan.receives, plan.out))
    return broadcast_by(plan.receives.front().peer);
  return number(transfer_method::messages);
}

/// The plan as it is carried: by a collective the tensor goes to nobody, or comes from nobody, in particular, as a
/// whole.
inline exchange_plan carried_by(std::uint64_t how, exchange_plan plan) {
  const auto is = [&](transfer_method c) { return how == static_cast<std::uint64_t>(c); };
  const auto whole = [&](const box_vector& extents) {
    box_transfer l{-1, extents, extents, extents};
    for (box_vector* begin : {&l.here, &l.there})
      for (index_t& b : *begin) b = 0;
    return std::vector<box_transfer>{l};
  };
  if (is(transfer_method::messages)) return plan;
  const bool broadcast = how >= static_cast<std::uint64_t>(transfer_method::broadcast);
  if (!plan.sends.empty()) plan.sends = whole(plan.in);
  if (!broadcast || plan.sends.empty()) plan.receives = whole(plan.out);
  plan.cells.clear();
  return plan;
}

}  // namespace engine

}  // namespace tessera
