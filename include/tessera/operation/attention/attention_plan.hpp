#pragma once

#include <tessera/operation/layer/layers.hpp>
#include <tessera/operation/layer/random_layers.hpp>
#include <tessera/operation/rule/axes_by_name.hpp>

namespace tessera::detail {

// What comes behind the values. A mask [n…, t, s] is of booleans, or of numbers that are added to scores where the form
// says so. Lengths of packed sequences are cumulative.
enum class behind_values : signed char { nothing, mask, lengths };
constexpr behind_values behind_of(const tensor_value* x) {
  if (x == nullptr) return behind_values::nothing;
  return x->element == element::int64 ? behind_values::lengths : behind_values::mask;
}

// The keys that a query reads, of a sequence in this dimension: all, those of its window, those up to its own place.
constexpr stream_reach keys_read(const attention_form& form, int sequence) {
  if (form.slides) return {sequence, form.before, form.after};
  return form.causal ? stream_reach::up_to_itself(sequence) : stream_reach();
}

// The signature of attention, with what comes behind the values.
constexpr signature attention_signature(int batch, const attention_form& form, behind_values more) {
  signature s;
  for (const char* own : {"TGRD", "SGD", "SGE"}) {
    letters l = letters_of(batch);
    for (char letter : named(own)) l.push(letter);
    s.operands.push(l);
  }
  if (more == behind_values::mask) {
    letters l = letters_of(batch);
    for (char letter : named("TS")) l.push(letter);
    s.operands.push(l);
  } else if (more == behind_values::lengths) {
    s.operands.push(named("P"));
    s = s.whole("P");
  }
  s.result = letters_of(batch);
  for (char letter : named("TGRE")) s.result.push(letter);
  return form.streamed ? s.whole("DRE").streamed('S', form.rows) : s.whole("TSDRE");
}

// Features of queries [n…, t, g · d], keys and values as heads.
constexpr refusal split_heads(layout& x, int operand_number, index_t heads) {
  const int last = x.dims.count - 1;
  if (last < 1) return refusal{code::layer_takes_other_dimensions, 2, x.dims.count};
  const index_t features = x.dims[last].extent;
  if (features == dynamic) return refusal{code::extent_not_static, last};
  if (features % heads != 0) return refusal{code::features_not_of_heads, operand_number, features, heads};
  signature s;
  s.kind = linearity::additive;
  s.operands.push(letters_of(last));
  s.operands[0].push('F');
  s.result = letters_of(last);
  for (char letter : named("GD")) s.result.push(letter);
  static_vector<operand, 4> one = no_items<operand, 4>;
  one.push({x, false});
  const inferred y = infer(s.split('F', 'G', 'D', features / heads), one);
  if (!y.why.ok()) return y.why;
  x = y.layout;
  if (operand_number > 0) return {};
  dimension only;  // each key serves one query
  only.extent = 1;
  x.dims.push(x.dims[last + 1]);
  x.dims[last + 1] = only;
  return {};
}

// Moves a cut of the sequence by some axes to the heads, in grains of their features; away, where there are none.
constexpr refusal move_to_heads(layout& x, int sequence, int heads, index_t grain,
                                const static_vector<int, max_axes>& axes, int operand_number) {
  const bool dealt = x.dims[sequence].zigzag;
  for (int a : axes) {
    const axis_placement& r = x.placements[a];
    if (x.mesh.axes[a].extent > 1 && (r.kind != placement::cut || r.dimension != sequence))
      return refusal{code::sequence_not_cut, x.mesh.axes[a].name, operand_number};
    x.set_placement(a, {});
  }
  x.dims[sequence].zigzag = dealt && x.levels(sequence) > 0;
  if (heads < 0) return {};
  if (x.levels(heads) == 0) x.dims[heads].balance(grain);
  for (int i = 0; i < axes.count; ++i) x.cut_by(heads, axes[i], i > 0);
  return {};
}

// A result whose heads are whole again, and whose sequence lies as that of the queries.
constexpr layout moved_from_heads(layout y, int sequence, const layout& queries,
                                  const static_vector<int, max_axes>& axes) {
  for (int a : axes) y.set_placement(a, {});
  y.dims[sequence] = queries.dims[sequence];
  for (int a = 0; a < y.placements.count; ++a)
    if (const axis_placement& r = queries.placements[a]; r.kind == placement::cut && r.dimension == sequence)
      y.placements[a] = r;
  return y;
}

// How keys are met. Streams, windows and whatever is hidden or dropped meet them in blocks, also where nothing is cut.
// The host's kernel wants queries and values of one number of features.
constexpr attended_keys attended_by(const layer_plan& p, const attention_form& form, behind_values behind,
                                    int sequence) {
  using by = attended_keys::by;
  const layout &q = p.used(0), &v = p.used(2);
  const bool alike = q.dims[q.dims.count - 1].extent == v.dims[v.dims.count - 1].extent;
  const bool blocks = form.streamed || form.slides || behind != behind_values::nothing || form.dropped > 0;
  attended_keys a;
  a.how = !blocks ? by::kernel : form.dropped > 0 || !alike ? by::scores : by::blocks;
  a.sequence = static_cast<signed char>(sequence);
  a.by_place = form.by_place();
  a.masked = behind == behind_values::mask;
  a.added = a.masked && form.added_mask;
  if (form.slides) a.reach = capped_sum(form.before, form.after);
  return a;
}

// The memory of attention: its operands and result, and a number for each query. For the fused kernel keys and values
// are copied out for each of their queries. A gradient that is differentiated reads the same. `heads` is the result
// before its heads are joined.
constexpr void hold_attention(layer_plan& p, layout heads, element e, const attended_keys& by) {
  const int dims = heads.dims.count;
  heads.dims[dims - 1].extent = 1;
  p.make(heads, bytes_of(e) < bytes_of(element::float32) ? element::float32 : e);
  const bool grouped = by.how == attended_keys::by::kernel && heads.dims[dims - 2].extent != 1;
  p.saves = saved_tensors::saving(grouped ? 1 : by.masked ? 15 : 7, 0, 1);
  p.saves.attends = by;
  if (!grouped) return;
  for (int i = 0; i < 2; ++i) p.make(p.raw(), e);
  p.saves.returning = 2;
}

// Each pair of a query and a key that it sees makes a multiply-add of each feature of both, and of each of the value.
// Backward makes scores once more, since no worker keeps them. Packed sequences and masks count as if all was seen,
// since only data know. `sequence` is the dimension of queries and keys.
constexpr void count_attention(layer_plan& p, const attention_form& form, int sequence) {
  constexpr index_t all = INT64_MAX / 4;
  const bool streams = p.exchanges() > 0 && p.sent_extents().at == p.used_extents(1).at;
  const held_extents keys = (streams ? p.brought_extents() : p.used_extents(1)).only(sequence);
  for (const bool scores : {true, false}) {
    const held_extents queries = scores ? p.used_extents() : p.raw_extents();
    counted_product& by = form.by_place() ? p.add_product({queries}) : p.add_product({queries, keys});
    by.back = scores ? 3 : 2;
    if (!form.by_place()) continue;
    by.queries = static_cast<signed char>(sequence);
    by.before = form.slides ? form.before : all;
    by.after = form.causal ? 0 : form.after;
  }
}

// The sequence is met as the form says.
constexpr layer_plan attention_as(const attention_form& form, const tensor_value& q, const tensor_value& k,
                                  const tensor_value& v, const tensor_value* more) {
  static_vector<operand, 4> operands = no_items<operand, 4>;
  for (const tensor_value* x : {&q, &k, &v}) operands.push({x->layout, false});
  refusal unknown;
  unsigned seen = 0;
  const static_vector<int, max_axes> over = found(q.layout.mesh, form.over, seen, unknown);
  if (!unknown.ok()) return refused_layer(unknown);
  const int sequence = q.layout.dims.count - (form.heads > 0 ? 2 : 4);
  if (sequence < 0) return refused_layer(refusal{code::layer_takes_other_dimensions, 4, q.layout.dims.count});
  for (int o = 0; o < 3 && over.count > 0; ++o) {
    layout& x = operands[o].layout;
    if (x.dims.count < sequence + 2) return refused_layer(refusal{code::layer_takes_other_dimensions, 3, x.dims.count});
    const index_t grain = form.heads > 0 ? larger(1, x.dims[sequence + 1].extent / form.heads) : 1;
    if (const refusal r = move_to_heads(x, sequence, sequence + 1, grain, over, o); !r.ok()) return refused_layer(r);
  }
  layer_plan p;
  const tensor_value* const given[]{&q, &k, &v};
  for (int o = 0; o < 3; ++o) p.add_input(given[o]->layout, operands[o].layout);
  for (int o = 0; o < 3 && form.heads > 0; ++o)
    if (const refusal r = split_heads(operands[o].layout, o, form.heads); !r.ok()) return refused_layer(r);
  const int batch = operands[0].layout.dims.count - 4;
  if (batch < 0) return refused_layer(refusal{code::layer_takes_other_dimensions, 4, q.layout.dims.count});
  if (is_complex(q.element) || !has_cotangent(q.element))
    return refused_layer(refusal{code::no_function_of_element, static_cast<int>(q.element)});
  for (element e : {k.element, v.element})
    if (e != q.element) return refused_layer(refusal{code::wrong_element, q.element, e});
  const behind_values behind = behind_of(more);
  const bool is_added = behind == behind_values::mask && form.added_mask;
  if (const element wanted = is_added ? q.element : element::boolean;
      behind == behind_values::mask && more->element != wanted)
    return refused_layer(refusal{code::wrong_element, wanted, more->element});
  const signature s = attention_signature(batch, form, behind);
  if (more != nullptr) {
    operands.push({more->layout, !is_added});
    if (behind == behind_values::mask && more->layout.dims.count > sequence)
      if (const refusal r = move_to_heads(operands[3].layout, sequence, -1, 1, over, 3); !r.ok())
        return refused_layer(r);
    p.add_input(more->layout, operands[3].layout);
  }
  const inferred y = infer(s, operands);
  if (!y.why.ok()) return refused_layer(y.why);
  if ((form.by_place() || behind == behind_values::lengths) &&
      operands[0].layout.dims[batch].extent != operands[1].layout.dims[batch].extent)
    return refused_layer(refusal{code::extents_differ, batch, operands[0].layout.dims[batch].extent,
                                 operands[1].layout.dims[batch].extent});

  signature join;
  join.kind = linearity::additive;
  join.operands.push(s.result);
  join.result = letters_of(batch);
  for (char letter : named("TH")) join.result.push(letter);
  const layer_plan joined = local(y.layout, join.merged("GRE", 'H'));
  if (over.count == 0) p.add_output(joined.output());
  else p.add_output(joined.output(), moved_from_heads(joined.output(), batch, q.layout, over));
  p.why = joined.why;
  for (int o = 0; o < operands.count; ++o)
    if (const int d = brought_dimension(s, o, operands[o].layout); d >= 0)
      p.add_exchange(p.used(o), brought(p.used(o), d), o == 3 ? more->element : q.element, o != 3 || is_added,
                     {d, form.rows, false, keys_read(form, batch), o != 3});
  hold_attention(p, y.layout, q.element, attended_by(p, form, behind, batch));
  count_attention(p, form, batch);
  if (form.dropped > 0) keep_draws(p);
  return p;
}

// An operand whose dynamic extents are one element a worker, also those that run time knows.
constexpr tensor_value one_a_worker(tensor_value x) {
  for (dimension& d : x.layout.dims)
    if (!d.has_static_extent()) d.extent = x.layout.mesh.size();
  return x;
}

// What a layer moves both ways.
constexpr index_t moved(const layer_plan& p, const operand_elements& e) {
  const traffic_value t = traffic_of(p, e);
  return capped_sum(t.forward.bytes, t.backward.bytes);
}

// Whether the form moves no more than one without axes over heads, of operands that say nothing of what run time knows.
constexpr bool chooses_heads(const attention_form& form, const attention_form& streaming, const tensor_value& q,
                             const tensor_value& k, const tensor_value& v, const tensor_value* more) {
  const tensor_value x[]{one_a_worker(q), one_a_worker(k), one_a_worker(v),
                         more == nullptr ? tensor_value{} : one_a_worker(*more)};
  const tensor_value* const behind = more == nullptr ? nullptr : &x[3];
  const layer_plan streams = attention_as(streaming, x[0], x[1], x[2], behind);
  if (!streams.why.ok()) return true;
  const layer_plan p = attention_as(form, x[0], x[1], x[2], behind);
  operand_elements e{{q.element, k.element, v.element}, 3};
  if (more != nullptr) e.push(more->element);
  return p.why.ok() && moved(p, e) <= moved(streams, e);
}

}  // namespace tessera::detail
