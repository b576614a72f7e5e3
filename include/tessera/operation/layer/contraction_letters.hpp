#pragma once

#include <tessera/operation/layer/contraction.hpp>

namespace tessera::detail {

/// The signatures of a contraction: of its product, and of the sum with its bias.
class contraction_letters {
 public:
  constexpr contraction_letters(const layout& x, const contraction& layer, int feature)
      : x_(x), layer_(layer), feature_(feature) {
    // no letter: these are as many as there are dimensions
    for (int i = 0; i < feature; ++i) in_.push(static_cast<char>(1 + i));
    in_.push('f');
    for (int i = 0; i < layer.kernels.count; ++i) in_.push(static_cast<char>('s' + i));
  }

  /// x[…, f, s…] w[o, f, k…] → y[…, o, s…]; with groups x[…, g, f, s…] w[g, o, f, k…] → y[…, g, o, s…]. Transposed:
  /// w[f, o, k…]. By experts: x[e, …, f] w[e, f, o] → y[e, …, o].
  constexpr signature multiply(unsigned spread) const {
    signature s;
    s.kind = linearity::multilinear;
    letters x;
    letters w;
    if (layer_.groups > 1) w.push('g');
    if (layer_.by_expert()) w.push(in_[0]);
    const bool inputs_first = layer_.inputs_at() < layer_.outputs_at();
    w.push(inputs_first ? 'f' : 'o');
    w.push(inputs_first ? 'o' : 'f');
    for (char letter : in_) {
      if (letter == 'f' && layer_.groups > 1) {
        x.push('g');
        s.result.push('g');
      }
      x.push(letter);
      s.result.push(letter == 'f' ? 'o' : letter);
    }
    for (int i = 0; i < layer_.kernels.count; ++i) {
      const char kernel = static_cast<char>('A' + i);
      w.push(kernel);
      s.special.push(along(i, spread));
      s.special.push({kernel, treatment::whole, {}, 0});
    }
    s.operands.push(x);
    s.operands.push(w);
    return s;
  }

  /// y[…, o, s…] + b[o]; by experts y[e, …, o] + b[e, 1, o].
  constexpr signature add() const {
    signature s;
    s.kind = linearity::additive;
    s.result = in_;
    s.result[feature_] = 'o';
    s.operands.push(s.result);
    letters b;
    if (layer_.by_expert()) {
      b.push(in_[0]);
      b.push('e');
    }
    b.push('o');
    s.operands.push(b);
    return s;
  }

 private:
  // What the operation does along the dimension of a kernel.
  constexpr treated along(int i, unsigned spread) const {
    const char letter = in_[feature_ + 1 + i];
    if (!layer_.transposed) return {letter, treatment::windowed, layer_.kernels[i]};
    const index_t n = x_.dims[feature_ + 1 + i].extent;
    if ((spread >> i & 1u) != 0)
      return {letter, treatment::spread, {}, 0, 0, layer_.outputs(i, n), layer_.kernels[i].needs()};
    return {letter, treatment::resampled, {}, 0, 0, layer_.outputs(i, n), layer_.needs(i)};
  }

  const layout& x_;
  const contraction& layer_;
  int feature_;
  letters in_;
};

}  // namespace tessera::detail
