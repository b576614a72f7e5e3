#pragma once

#include <tessera/tensor/tensor.hpp>

namespace tessera {

namespace detail {

template <class From, class Q>
struct moved {
  static constexpr tensor_value value = [] {
    tensor_value t{layout_of_partition<Q>, value_of<From>.element};
    const layout& from = value_of<From>.layout;
    for (int d = 0; d < t.layout.dims.count && d < from.dims.count; ++d) {
      t.layout.dims[d].extent = from.dims[d].extent;
      t.layout.dims[d].tag = from.dims[d].tag;
    }
    return t;
  }();
};

/// The type of a tensor after it went to partition Q.
template <class From, class Q>
using moved_type = tensor<Q, typename From::shape_type, typename From::element_type>;

template <class Primitive>
constexpr bool checked_primitive = sizeof(Primitive) > 0;

}  // namespace detail

/// Takes a dynamic tensor to another layout.
inline tensor<dyn> to(const layout& target, const tensor<dyn>& x) {
  return {x.team(), target, change_layout(x.team(), x.layout(), target, x.local())};
}

/// Takes a tensor to another partition, by whatever verbs lead there: `to<Q>(x)`.
template <class Q, class P, class S, class E>
auto to(const tensor<P, S, E>& x) {
  using From = tensor<P, S, E>;
  using Result = detail::moved_type<From, Q>;
  static_assert(detail::checked_primitive<primitive<From, Result>>);
  layout target = value_of<Result>.layout;
  for (int d = 0; d < target.dims.count; ++d) target.dims[d].extent = x.layout().dims[d].extent;
  return Result(to(target, x.dynamic()));
}

// The named verbs: each refuses a pair of partitions that it does not lead between. Beside each its adjoint.
#define TESSERA_VERB(name)                                                                          \
  template <class Q, class P, class S, class E>                                                     \
  auto name(const tensor<P, S, E>& x) {                                                             \
    using From = tensor<P, S, E>;                                                                   \
    static_assert(detail::checked_primitive<named_primitive<verb::name, From, detail::moved_type<From, Q>>>); \
    return to<Q>(x);                                                                                \
  }
TESSERA_VERB(broadcast)
TESSERA_VERB(sum_reduce)
TESSERA_VERB(all_reduce)
TESSERA_VERB(copy_in)
TESSERA_VERB(all_gather)
TESSERA_VERB(reduce_scatter)
TESSERA_VERB(scatter)
TESSERA_VERB(gather)
TESSERA_VERB(all_to_all)
TESSERA_VERB(repartition)
TESSERA_VERB(halo_exchange)
TESSERA_VERB(halo_accumulate)
TESSERA_VERB(share)
TESSERA_VERB(keep)
TESSERA_VERB(take)
TESSERA_VERB(put)
TESSERA_VERB(as_term)
#undef TESSERA_VERB

}  // namespace tessera
