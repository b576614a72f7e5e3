// Rotary embeddings by the places of a cut dimension, beside complex numbers of the whole sequence.

#include "tests/support/tensors.hpp"

#include <tessera/functions.hpp>
#include <tessera/nn/network/program_parts.hpp>

using namespace tessera;
using namespace tessera::testing;

namespace rotary_embeddings {

template <int P>
struct sequence : axis<P> {};
template <int P>
struct other : axis<P> {};

/// Features i and i + d / 2 as a complex number, times e to the i p base^(-2i / d).
at::Tensor serial(const at::Tensor& x, double base) {
  const index_t half = x.size(-1) / 2;
  const at::Tensor pairs = at::complex(x.narrow(-1, 0, half), x.narrow(-1, half, half));
  const at::Tensor turns = at::exp(at::arange(half, at::kDouble) * (-std::log(base) / static_cast<double>(half)));
  const at::Tensor angles = at::arange(x.size(1), at::kDouble).unsqueeze(1) * turns;
  const at::Tensor y = pairs * at::polar(at::ones_like(angles), angles).unsqueeze(1);
  return at::cat({at::real(y), at::imag(y)}, -1);
}

template <class M>
std::string differences() {
  const auto out = in_team<M>([](const team<M>& t) -> std::string {
    std::string all;
    for (const bool zigzag : {false, true})
      for (const index_t rows : {11, 3})
        for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
          layout x;
          x.mesh = M::value;
          x.placements.resize(x.mesh.axes.count);
          x.dims.resize(4);
          const index_t extents[]{2, rows, 3, 6};
          for (int d = 0; d < 4; ++d) x.dims[d].extent = extents[d];
          x.cut_by(1, 0);
          if (x.mesh.axes.count > 1) x.cut_by(2, 1);
          x.dims[1].zigzag = zigzag;
          const at::Tensor whole =
              (at::rand({2, rows, 3, 6}, at::detail::createCPUGenerator(1), at::kDouble) - 0.5).to(type);
          tensor<dyn> own = distribute(t, x, whole.clone());
          own.requires_grad();
          const tensor<dyn> y = rotary<1, 100>(own);
          const at::Tensor wide = whole.to(at::kDouble).requires_grad_();
          const at::Tensor wanted = serial(wide, 100);
          const double near = type == at::kDouble ? 1e-13 : type == at::kFloat ? 1e-6 : 1e-2;
          const auto far = [&](const at::Tensor& a, const tensor<dyn>& b) {
            return !((a.detach() - full_tensor(b).detach().to(at::kDouble)).abs().max().template item<double>() <=
                     near);
          };
          if (far(wanted, y)) all += fmt::format("{} rows of {}; ", rows, c10::toString(type));
          const at::Tensor g = whole.flip(0);
          y.local().backward(distribute(t, y.layout(), g.clone()).local());
          wanted.backward(g.to(at::kDouble));
          if (far(wide.grad(), {own.team(), x, own.local().grad()}))
            all += fmt::format("the gradient of {} rows of {}; ", rows, c10::toString(type));
        }
    return all;
  });
  std::string all = out.errors();
  for (const auto& one : out.results) all += one.value_or("");
  return all;
}

TEST_CASE("rotary embeddings turn by global places", "[law][runtime][gradient]") {
  CHECK(differences<mesh<sequence<1>>>() == "");
  CHECK(differences<mesh<sequence<3>>>() == "");
  CHECK(differences<mesh<sequence<4>>>() == "");
  CHECK(differences<mesh<sequence<2>, other<2>>>() == "");
}

TEST_CASE("what has no pairs of features, no place or no base is refused", "[refusal]") {
  const auto why = [](auto f, index_t features, int cut) {
    layout x;
    x.mesh = mesh<sequence<2>>::value;
    x.placements.resize(1);
    x.dims.resize(3);
    for (int d = 0; d < 3; ++d) x.dims[d].extent = d == 2 ? features : 4;
    x.cut_by(cut, 0);
    return f.on({x, element::float32}).why;
  };
  CHECK(why(functions::rotary<1, 10000>{}, 4, 1).ok());
  CHECK(why(functions::rotary<1, 10000>{}, 5, 1).is(code::features_odd));
  CHECK(why(functions::rotary<2, 10000>{}, 4, 1).is(code::dimension_not_there));
  CHECK(why(functions::rotary<1, 0>{}, 4, 1).is(code::base_not_positive));
  CHECK(why(functions::rotary<1, 10000>{}, 4, 2).is(code::dimension_needed_whole));
}

}  // namespace rotary_embeddings
