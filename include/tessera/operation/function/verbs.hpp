#pragma once

#include <tessera/meta/call_site.hpp>
#include <tessera/operation/function/operands.hpp>
#include <tessera/operation/layer/layers.hpp>
#include <tessera/primitive/primitive.hpp>

namespace tessera {

namespace functions {

/// A verb to a partition, as a layer; `verb::several` is any that leads there.
template <verb Verb, class Q>
struct change_to : nn::repartition<Q> {
  static constexpr const char* name = Verb == verb::several ? "to" : engine::name_of(Verb);
  static constexpr layer_plan plan(const tensor_value& x) {
    if constexpr (!PartitionType<Q>)
      return engine::refused_layer(tessera::detail::check_kinds<kind::call, kind::partition, Q>());
    layer_plan p = nn::repartition<Q>::plan(x);
    if (Verb != verb::several && p.why.ok()) p.why = engine::check_verb(Verb, x.layout, p.output());
    return p;
  }
};

/// The entry point for flows: a node of the program.
template <verb Verb, class Q, engine::FlowType F>
constexpr auto lead(const change_to<Verb, Q>&, const F& x, call_site) {
  const auto y = tessera::detail::passed_on<change_to<Verb, Q>>(x);
  using verdict = typename decltype(y)::verdict;
  verdict::template refuse<verdict>();
  return tessera::detail::silent<change_to<Verb, Q>>(y);
}

}  // namespace functions

/// Takes a tensor to another partition, by whatever verbs lead there, DTensor's `redistribute`: `to<Q>(x)`.
template <class Q = void, engine::AnyTensor X>
constexpr auto to(const X& x, call_site at = call_site::here()) {
  return lead(functions::change_to<verb::several, Q>{}, x, at);
}

#define TESSERA_VERB(name)                                            \
  template <class Q = void, engine::AnyTensor X>                      \
  constexpr auto name(const X& x, call_site at = call_site::here()) { \
    return lead(functions::change_to<verb::name, Q>{}, x, at);        \
  }
/// A verb: takes a tensor to a partition that it leads to, and refuses any other; see `verb` for each and its adjoint.
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
TESSERA_VERB(shard)
TESSERA_VERB(to_invariant)
TESSERA_VERB(to_root)
TESSERA_VERB(to_partial)
#undef TESSERA_VERB

}  // namespace tessera
