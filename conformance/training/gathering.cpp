#include "gathering.hpp"

namespace conformance::training {

layout gathered(layout x, int dim) {
  for (int a = 0; a < x.placements.count; ++a)
    if (x.placements[a].kind == placement::cut && x.placements[a].dimension == dim) x.set_placement(a, {});
  return x;
}

tensor<dyn> range(const tensor<dyn>& x, int dim, index_t begin, index_t end) {
  layout lies = x.layout();
  const engine::interval mine = box_of(lies, x.team()->rank())[dim];
  if (lies.levels(dim) == 0) lies.dims[dim] = uncut(end - begin);
  else lies.dims[dim].narrow(begin, end - begin);
  const index_t lo = std::clamp(begin, mine.lo, mine.hi);
  const index_t hi = std::clamp(end, lo, mine.hi);
  return {x.team(), lies, x.local().narrow(dim, lo - mine.lo, hi - lo)};
}

tensor<dyn> in_chunks(const tensor<dyn>& b, int dim, int over, index_t chunk,
                      const std::function<tensor<dyn>(const tensor<dyn>&)>& f) {
  const index_t n = b.layout().dims[dim].extent;
  if (chunk <= 0 || chunk >= n) return f(to(gathered(b.layout(), over), b));
  std::vector<at::Tensor> parts;
  layout lies;
  for (index_t begin = 0; begin < n; begin += chunk) {
    const tensor<dyn> part = range(b, dim, begin, std::min(n, begin + chunk));
    const tensor<dyn> c = f(to(gathered(part.layout(), over), part));
    parts.push_back(c.local());
    lies = c.layout();
  }
  lies.dims[lies.dims.count - 1].extent = n;
  return {b.team(), lies, at::cat(parts, -1)};
}

}  // namespace conformance::training
