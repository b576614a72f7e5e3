// Every argument is of the kind that its place takes, and every count lies in its range.
#include <tessera/network.hpp>

namespace ts = tessera;
namespace nn = tessera::nn;

struct row : ts::axis<2> {};
struct col : ts::axis<3> {};
struct batch : ts::dyn {};
using grid = ts::mesh<row, col>;
using P = ts::partition<grid, ts::blocks<row>>;
template <class Q>
using T = ts::tensor<Q, ts::shape_of<10>>;
using good = T<P>;
using copies = T<ts::partition<grid, ts::whole>>;
using dynamic = ts::tensor<P, ts::shape<batch>>;
using dynamic_copies = ts::tensor<ts::partition<grid, ts::whole>, ts::shape<batch>>;
using image =
    ts::tensor<ts::partition<grid, ts::whole, ts::whole, ts::blocks<row>, ts::blocks<col>>, ts::shape_of<4, 6, 9, 9>>;
using matrix = ts::tensor<ts::partition<grid, ts::blocks<row>, ts::whole>, ts::shape_of<8, 6>>;
using net =
    ts::sequential_type<ts::tensor<ts::partition<grid, ts::blocks<row>, ts::whole>, ts::shape<batch, ts::dim<6>>>,
                        nn::linear<4>>;
constexpr auto scaled = ts::operation("nf,f->nf").multilinear();

// Meshes.
static_assert(ts::primitive<good, copies>::cost().total == 30);
#if defined(MESH_OF_MESH)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::mesh, 0, tessera::kind::axis, tessera::kind::mesh>
using bad = T<ts::partition<ts::mesh<grid, row>, ts::blocks<row>>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(MESH_INT)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::mesh, 1, tessera::kind::axis,
// tessera::kind::element>
using bad = T<ts::partition<ts::mesh<row, int>, ts::blocks<row>>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(MESH_INCOMPLETE)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::mesh, 1, tessera::kind::axis,
// tessera::kind::incomplete_class>
struct later;
using bad = T<ts::partition<ts::mesh<row, later>, ts::blocks<row>>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(MESH_PRIVATE)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::mesh, 1, tessera::kind::axis,
// tessera::kind::private_axis>
class hidden : ts::axis<2> {};
using bad = T<ts::partition<ts::mesh<row, hidden>, ts::blocks<row>>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(MESH_ZERO_ROTATED)
// expect: [tessera.mesh.extent] && extent_not_positive<z, tessera::with::extent<0>>
struct z : ts::axis<0> {};
using bad = T<ts::partition<ts::mesh<z>, ts::rotated<ts::blocks<z>, 1>>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(MESH_HUGE)
// expect: [tessera.mesh.size] && mesh_too_large<b, tessera::with::extent<65536>>
struct a : ts::axis<65536> {};
struct b : ts::axis<65536> {};
using bad = T<ts::partition<ts::mesh<a, b>, ts::blocks<a>>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(PRODUCT_HUGE)
// expect: [tessera.mesh.size] && mesh_too_large<b, tessera::with::extent<65536>>
struct a : ts::axis<65536> {};
struct b : ts::axis<65536> {};
struct ab : ts::product<a, b> {};
using bad = T<ts::partition<ts::mesh<ab>, ts::blocks<ab>>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(AXIS_HUGE)
// expect: [tessera.mesh.size] && mesh_too_large<a, tessera::with::extent<2147483648>>
struct a : ts::axis<(1LL << 31)> {};
using bad = T<ts::partition<ts::mesh<a>, ts::blocks<a>>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(MESH_VALUE)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::mesh, 1, tessera::kind::axis,
// tessera::kind::element>
int n = ts::mesh<row, int>::value.size();
#elif defined(PRODUCT_OF_INT)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::axis, 1, tessera::kind::axis,
// tessera::kind::element>
struct p : ts::product<row, int> {};
using bad = T<ts::partition<grid, ts::blocks<p>>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(EXTENT_OF_MESH)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::axis, 0, tessera::kind::axis, tessera::kind::mesh>
using bad = T<ts::partition<ts::mesh<ts::extent<grid, 4>>, ts::whole>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(PLACED_AXIS)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::mesh, 0, tessera::kind::mesh, tessera::kind::axis>
using bad = T<ts::partition<ts::placed<row, 4>, ts::whole>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(PLACED_NEGATIVE)
// expect: [tessera.mesh.rank] && rank_outside<tessera::with::lowest<-4>, tessera::with::highest<1>>
using bad = T<ts::partition<ts::placed<grid, -4>, ts::whole>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(FIXED_MESH)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::mesh, 1, tessera::kind::axis, tessera::kind::mesh>
using bad = T<ts::partition<ts::fixed<grid, grid, 0>, ts::whole>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#endif

// Partitions.
namespace far {
struct row : ts::axis<2> {};  // an axis of that name and extent is the same one
}  // namespace far
static_assert(ts::primitive<T<ts::partition<grid, ts::blocks<far::row>>>, copies>::cost().total == 30);
#if defined(PARTITION_AXIS)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::partition, 0, tessera::kind::mesh,
// tessera::kind::axis>
using bad = T<ts::partition<row, ts::whole>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(PARTITION_NOMESH)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::partition, 0, tessera::kind::mesh,
// tessera::kind::cover>
using bad = T<ts::partition<ts::blocks<row>>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(PARTITION_COMBINE)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::partition, 2, tessera::kind::cover,
// tessera::kind::combine>
using bad = T<ts::partition<grid, ts::whole, ts::max>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(BLOCKS_MESH)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::cover, 0, tessera::kind::axis, tessera::kind::mesh>
using bad = T<ts::partition<grid, ts::blocks<grid>>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(BLOCKS_GROUP)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::cover, 0, tessera::kind::axis, tessera::kind::group>
using bad = T<ts::partition<grid, ts::blocks<ts::along<row>>>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(GRAINS_COVER)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::cover, 1, tessera::kind::axis, tessera::kind::cover>
using bad = T<ts::partition<grid, ts::grains<2, ts::blocks<row>>>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(LENGTHS_AXIS)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::cover, 1, tessera::kind::extent,
// tessera::kind::axis>
using bad = T<ts::partition<grid, ts::lengths<row, row, ts::dim<6>>>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(LENGTHS_NEGATIVE)
// expect: [tessera.shape.negative] && extent_negative<tessera::with::dimension<0>, tessera::with::extent<-2>>
using bad = T<ts::partition<grid, ts::lengths<row, ts::dim<-2>, ts::dim<12>>>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(ROTATED_AXIS)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::cover, 0, tessera::kind::cover, tessera::kind::axis>
using bad = T<ts::partition<grid, ts::rotated<row, 1>>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(HALO_OF_HALO)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::cover, 0, tessera::kind::cover, tessera::kind::halo>
using h = ts::haloed<ts::blocks<row>, 10, 1, -1, 1>;
using bad = T<ts::partition<grid, ts::haloed<h, 10, 1, -1, 1>>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(HALO_NEGATIVE)
// expect: [tessera.shape.negative] && extent_negative<tessera::with::dimension<0>, tessera::with::extent<-5>>
using bad = T<ts::partition<grid, ts::haloed<ts::blocks<row>, -5, 1, -1, 1>>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(HALO_HUGE)
// expect: [tessera.window.size] && window_too_large<tessera::with::dimension<0>,
// tessera::with::kernel<9223372036854775807>, tessera::with::stride<-1>, tessera::with::dilation<1>>
using bad = T<ts::partition<grid, ts::haloed<ts::blocks<row>, 10, INT64_MAX, -1, 1>>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(REPLICATE_COMBINE)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::placement, 1, tessera::kind::axis,
// tessera::kind::combine>
using bad = T<ts::partition<grid, ts::whole, ts::replicate<row, ts::max>>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(PARTIAL_TWO)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::placement, 2, tessera::kind::axis,
// tessera::kind::combine>
using bad = T<ts::partition<grid, ts::whole, ts::partial<row, ts::max, ts::min>>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(INVARIANT_MESH)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::placement, 0, tessera::kind::axis,
// tessera::kind::mesh>
using bad = T<ts::partition<grid, ts::whole, ts::invariant<grid>>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(ALONG_INT)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::group, 0, tessera::kind::axis,
// tessera::kind::element>
using bad = T<ts::partition<grid, ts::whole, ts::invariant<ts::along<int>>>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(ON_PARTITION)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::placement, 0, tessera::kind::axis,
// tessera::kind::mesh>
using bad = T<ts::partition<grid, ts::whole, ts::on<grid, 0>>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(NAMES)
// expect: [tessera.partition.name] && axes_of_one_name<row, tessera::with::extent_in_the_mesh<2>,
// tessera::with::extent_of_the_other<3>>
namespace other {
struct row : ts::axis<3> {};
}  // namespace other
using bad = T<ts::partition<grid, ts::blocks<other::row>>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#endif

// Tensors.
struct width : ts::dyn {
  explicit width(int);  // nobody makes one
};
static_assert(
    ts::sequential_type<ts::tensor<ts::partition<grid, ts::blocks<row>, ts::whole>, ts::shape<width, ts::dim<4>>>,
                        nn::relu>::program.count == 1);
#if defined(NAMES_DYN)
// expect: [tessera.shape.name] && extents_of_one_name<tessera::with::dimension<0>, tessera::with::other_dimension<1>>
namespace other {
struct batch : ts::dyn {};
}  // namespace other
using bad = ts::tensor<ts::partition<grid, ts::whole, ts::whole>, ts::shape<batch, other::batch>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(SHAPE_INT)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::shape, 0, tessera::kind::extent,
// tessera::kind::element>
using bad = ts::tensor<P, ts::shape<int>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(SHAPE_AXIS)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::shape, 0, tessera::kind::extent,
// tessera::kind::axis>
using bad = ts::tensor<P, ts::shape<row>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(ELEMENT_SECOND)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::tensor, 1, tessera::kind::shape,
// tessera::kind::element>
using bad = ts::tensor<P, double>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(NO_SHAPE)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::tensor, 1, tessera::kind::shape,
// tessera::kind::nothing>
using bad = ts::tensor<P>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(MESH_FIRST)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::tensor, 0, tessera::kind::partition,
// tessera::kind::mesh>
using bad = ts::tensor<grid, ts::shape_of<10>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(SHAPE_THIRD)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::tensor, 2, tessera::kind::element,
// tessera::kind::shape>
using bad = ts::tensor<P, ts::shape_of<10>, ts::shape_of<10>>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(ELEMENT_AXIS)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::tensor, 2, tessera::kind::element,
// tessera::kind::axis>
using bad = ts::tensor<P, ts::shape_of<10>, row>;
static_assert(ts::primitive<bad, copies>::cost().total >= 0);
#elif defined(VALUE_OF_REFUSED)
// expect: [tessera.partition.dimensions] && wrong_number_of_dimensions<tessera::with::covers<1>,
// tessera::with::dimensions<2>>
using bad = ts::tensor<P, ts::shape_of<10, 3>>;
constexpr int n = ts::value_of<bad>.layout.dims.count;
#elif defined(COTANGENT_PARTITION)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::call, 0, tessera::kind::tensor,
// tessera::kind::partition>
using bad = ts::cotangent_type<P>;
static_assert(ts::TensorType<bad>);
#endif

// Primitives and operations.
static_assert(ts::adjoint<ts::primitive<good, copies>>::cost().total == 30);
#if defined(PRIM_PARTITION)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::primitive, 0, tessera::kind::tensor,
// tessera::kind::partition>
using bad = ts::primitive<P, P>;
static_assert(bad::cost().total >= 0);
#elif defined(PRIM_ONE)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::primitive, 1, tessera::kind::tensor,
// tessera::kind::nothing>
using bad = ts::primitive<good>;
static_assert(bad::cost().total >= 0);
#elif defined(NAMED_PARTITION)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::primitive, 1, tessera::kind::tensor,
// tessera::kind::partition>
using bad = ts::engine::named_primitive<ts::verb::all_gather, good, P>;
static_assert(bad::cost().total >= 0);
#elif defined(COMP_TENSOR)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::primitive, 1, tessera::kind::primitive,
// tessera::kind::tensor>
using bad = ts::composition<ts::primitive<good, copies>, copies>;
static_assert(bad::cost().total >= 0);
#elif defined(ADJOINT_TENSOR)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::call, 0, tessera::kind::primitive,
// tessera::kind::tensor>
using bad = ts::adjoint<good>;
static_assert(sizeof(bad*) > 0);
#elif defined(ADJOINT_USE)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::primitive, 1, tessera::kind::tensor,
// tessera::kind::partition>
using bad = ts::adjoint<ts::primitive<good, P>>;
static_assert(bad::cost().total >= 0);
#elif defined(OP_PARTITION)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::operation, 1, tessera::kind::tensor,
// tessera::kind::partition>
static_assert(ts::TensorType<ts::operation_type<scaled, P>>);
#elif defined(OP_NONE)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::operation, 1, tessera::kind::tensor,
// tessera::kind::nothing>
static_assert(ts::TensorType<ts::operation_type<scaled>>);
#elif defined(OP_INT)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::operation, 2, tessera::kind::tensor,
// tessera::kind::element>
static_assert(ts::TensorType<ts::operation_type<scaled, matrix, int>>);
#elif defined(OP_RANK)
// expect: [tessera.signature.dimensions] && operand_of_other_dimensions<tessera::with::operand<1>,
// tessera::with::takes<1>, tessera::with::is_given<2>>
static_assert(ts::TensorType<ts::operation_type<scaled, matrix, matrix>>);
#elif defined(NEIGHBOUR_INT)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::call, 0, tessera::kind::axis,
// tessera::kind::element>
int n = ts::neighbour<int>(grid::value, {}, 1);
#elif defined(OVERFLOW)
// expect: [tessera.cost.overflow] && cost_overflows<>
struct a : ts::axis<256> {};
struct b : ts::axis<256> {};
struct c : ts::axis<256> {};
using m = ts::mesh<a, b, c>;
using s = ts::shape_of<(1LL << 40)>;
static_assert(ts::primitive<ts::tensor<ts::partition<m, ts::blocks<a, b, c>>, s>,
                            ts::tensor<ts::partition<m, ts::whole>, s>>::cost()
                  .total > 0);
#endif

// Bindings.
static_assert(ts::traffic<net>(ts::bind<batch>(8)).forward.bytes >= 0);
static_assert(ts::traffic<net, ts::bind<batch>(8)>().forward.bytes >= 0);
static_assert(ts::peak_memory<net, ts::bind<batch>(8)>().training > 0);
static_assert(ts::multiply_adds<net, ts::bind<batch>(8)>().forward.total >= 0);
#if defined(BUDGET)
// expect: forward.bytes < 0
static_assert(ts::traffic<net, ts::bind<batch>(8)>().forward.bytes < 0);
#elif defined(CONSTANT_INT)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::call, 1, tessera::kind::binding,
// tessera::kind::element>
static_assert(ts::traffic<net, 8>().forward.bytes >= 0);
#elif defined(CONSTANT_TWICE)
// expect: [tessera.shape.bound_twice] && extent_bound_twice<tessera::with::binding<0>, tessera::with::other_binding<1>>
static_assert(ts::traffic<net, ts::bind<batch>(8), ts::bind<batch>(9)>().forward.bytes >= 0);
#elif defined(BIND_AXIS)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::call, 0, tessera::kind::extent, tessera::kind::axis>
static_assert(ts::traffic<net>(ts::bind<row>(8)).forward.bytes >= 0);
#elif defined(BIND_INT)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::call, 1, tessera::kind::binding,
// tessera::kind::element>
static_assert(ts::traffic<net>(8).forward.bytes >= 0);
#elif defined(BIND_NEGATIVE)
// expect: [tessera.shape.negative]
constexpr auto bad = ts::traffic<net>(ts::bind<batch>(-8)).forward.bytes;
#elif defined(BIND_TWICE)
// expect: [tessera.shape.bound_twice] && extent_bound_twice<tessera::with::binding<0>, tessera::with::other_binding<1>>
static_assert(ts::traffic<net>(ts::bind<batch>(8), ts::bind<batch>(9)).forward.bytes >= 0);
#elif defined(UNBOUND_PLAN)
// expect: [tessera.shape.unbound] && extent_not_bound<tessera::with::dimension<0>>
constexpr auto bad = ts::primitive<dynamic, dynamic_copies>::plan();
#elif defined(LEARNED_COST)
// expect: [tessera.lengths.unknown] && lengths_not_known<tessera::with::dimension<0>>
using l = T<ts::partition<grid, ts::lengths<row>>>;
static_assert(ts::primitive<l, copies>::cost().total >= 0);
#elif defined(LEARNED_TRAFFIC)
// expect: [tessera.lengths.unknown] && lengths_not_known<tessera::with::dimension<0>>
using l = ts::tensor<ts::partition<grid, ts::lengths<row>, ts::whole>, ts::shape_of<10, 4>>;
static_assert(ts::traffic<ts::sequential_type<l, nn::relu>>().forward.bytes >= 0);
#elif defined(TRAFFIC_TENSOR)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::call, 0, tessera::kind::network,
// tessera::kind::tensor>
static_assert(ts::traffic<good>().forward.bytes >= 0);
#elif defined(MEMORY_TENSOR)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::call, 0, tessera::kind::network,
// tessera::kind::tensor>
static_assert(ts::peak_memory<good>().forward >= 0);
#elif defined(MEMORY_UNBOUND)
// expect: [tessera.shape.unbound] && extent_not_bound<tessera::with::dimension<0>>
static_assert(ts::peak_memory<net>().forward >= 0);
#elif defined(MEMORY_TWICE)
// expect: [tessera.shape.bound_twice] && extent_bound_twice<tessera::with::binding<0>, tessera::with::other_binding<1>>
static_assert(ts::peak_memory<net, ts::bind<batch>(8), ts::bind<batch>(9)>().forward >= 0);
#elif defined(MEMORY_BUDGET)
// expect: training < 0
static_assert(ts::peak_memory<net, ts::bind<batch>(8)>().training < 0);
#elif defined(ARITHMETIC_TENSOR)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::call, 0, tessera::kind::network,
// tessera::kind::tensor>
static_assert(ts::multiply_adds<good>().forward.total >= 0);
#elif defined(ARITHMETIC_UNBOUND)
// expect: [tessera.shape.unbound] && extent_not_bound<tessera::with::dimension<0>>
static_assert(ts::multiply_adds<net>().forward.total >= 0);
#elif defined(ARITHMETIC_TWICE)
// expect: [tessera.shape.bound_twice] && extent_bound_twice<tessera::with::binding<0>, tessera::with::other_binding<1>>
static_assert(ts::multiply_adds<net, ts::bind<batch>(8), ts::bind<batch>(9)>().forward.total >= 0);
#elif defined(ARITHMETIC_BUDGET)
// expect: forward.total < 0
static_assert(ts::multiply_adds<net, ts::bind<batch>(8)>().forward.total < 0);
#elif defined(ARITHMETIC_OVERFLOW)
// expect: [tessera.cost.overflow] && cost_overflows<>
using wide = ts::tensor<ts::partition<grid, ts::whole, ts::whole>, ts::shape<batch, ts::dim<1 << 20>>>;
static_assert(
    ts::multiply_adds<ts::sequential_type<wide, nn::linear<1 << 20>>, ts::bind<batch>(1 << 24)>().forward.total > 0);
#endif

// Networks, layers and their options.
static_assert(
    ts::sequential_type<image, nn::slice<2, 1, 9>, nn::avg_pool<ts::kernel<3, 3>, ts::divisor<1>>>::program.count == 2);
#if defined(NET_PARTITION)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::network, 0, tessera::kind::tensor,
// tessera::kind::partition>
using bad = ts::sequential_type<P, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(NET_EMPTY)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::network, 0, tessera::kind::tensor,
// tessera::kind::nothing>
using bad = ts::sequential_type<>;
static_assert(bad::program.count >= 0);
#elif defined(NET_TENSOR_LAYER)
// expect: [tessera.argument.kind] && at_layer<0, && tessera::wrong_argument<tessera::kind::flow, 1,
// tessera::kind::layer, tessera::kind::tensor>
using bad = ts::sequential_type<image, image>;
static_assert(bad::program.count >= 0);
#elif defined(LINEAR_NEGATIVE)
// expect: [tessera.shape.negative] && at_layer<0, && tessera::verdicts::extent_negative<tessera::with::dimension<1>,
// tessera::with::extent<-1>>
using bad = ts::sequential_type<matrix, nn::linear<-1>>;
static_assert(bad::program.count >= 0);
#elif defined(LINEAR_OPTION_AXIS)
// expect: [tessera.argument.kind] && at_layer<0, && tessera::wrong_argument<tessera::kind::option, 0,
// tessera::kind::axis, tessera::kind::element>
using bad = ts::sequential_type<matrix, nn::linear<4, ts::cut_out<int>>>;
static_assert(bad::program.count >= 0);
#elif defined(LINEAR_OUTPUT_MESH)
// expect: [tessera.argument.kind] && at_layer<0, && tessera::wrong_argument<tessera::kind::option, 0,
// tessera::kind::partition, tessera::kind::mesh>
using bad = ts::sequential_type<matrix, nn::linear<4, ts::output_as<grid>>>;
static_assert(bad::program.count >= 0);
#elif defined(CONV_NO_KERNEL)
// expect: [tessera.layer.kernel] && at_layer<0, && tessera::verdicts::wrong_kernel<tessera::with::extents<0>>
using bad = ts::sequential_type<image, nn::conv<4>>;
static_assert(bad::program.count >= 0);
#elif defined(CONV_KERNEL4)
// expect: [tessera.layer.kernel] && at_layer<0, && tessera::verdicts::wrong_kernel<tessera::with::extents<4>>
using bad = ts::sequential_type<image, nn::conv<4, ts::kernel<3, 3, 3, 3>>>;
static_assert(bad::program.count >= 0);
#elif defined(CONV_DILATION)
// expect: [tessera.window.size] && at_layer<0, && tessera::verdicts::window_too_large<tessera::with::dimension<2>,
// tessera::with::kernel<3>, tessera::with::stride<1>, tessera::with::dilation<9223372036854775807>>
using bad = ts::sequential_type<image, nn::conv<4, ts::kernel<3, 3>, ts::dilation<INT64_MAX>>>;
static_assert(bad::program.count >= 0);
#elif defined(CONV_KERNEL_HUGE)
// expect: [tessera.window.size] && at_layer<0, && tessera::verdicts::window_too_large<tessera::with::dimension<2>,
// tessera::with::kernel<9223372036854775807>, tessera::with::stride<1>, tessera::with::dilation<1>>
using bad = ts::sequential_type<image, nn::conv<4, ts::kernel<INT64_MAX, 3>>>;
static_assert(bad::program.count >= 0);
#elif defined(CONV_PADDING_HUGE)
// expect: [tessera.window.size] && at_layer<0, && tessera::verdicts::window_too_large<tessera::with::dimension<2>,
// tessera::with::kernel<3>, tessera::with::stride<1>, tessera::with::dilation<1>>
using bad = ts::sequential_type<image, nn::conv<4, ts::kernel<3, 3>, ts::padding<INT64_MAX>>>;
static_assert(bad::program.count >= 0);
#elif defined(POOL_PADDING_HUGE)
// expect: [tessera.window.size] && at_layer<0, && tessera::verdicts::window_too_large<tessera::with::dimension<2>,
// tessera::with::kernel<3>, tessera::with::stride<3>, tessera::with::dilation<1>>
using bad = ts::sequential_type<image, nn::max_pool<ts::kernel<3, 3>, ts::padding<INT64_MAX>>>;
static_assert(bad::program.count >= 0);
#elif defined(POOL_CEIL_STRIDE0)
// expect: [tessera.window.positive] && at_layer<0, &&
// tessera::verdicts::window_not_positive<tessera::with::dimension<2>, tessera::with::kernel<3>,
// tessera::with::stride<0>, tessera::with::dilation<1>>
using bad = ts::sequential_type<image, nn::max_pool<ts::kernel<3, 3>, ts::stride<0>, ts::ceil_mode>>;
static_assert(bad::program.count >= 0);
#elif defined(AVG_DIVISOR0)
// expect: [tessera.layer.divisor] && at_layer<0, && tessera::verdicts::divisor_not_positive<tessera::with::divisor<0>>
using bad = ts::sequential_type<image, nn::avg_pool<ts::kernel<3, 3>, ts::divisor<0>>>;
static_assert(bad::program.count >= 0);
#elif defined(SLICE_NEGATIVE)
// expect: [tessera.signature.range] && at_layer<0, && tessera::verdicts::range_outside<tessera::with::dimension<2>,
// tessera::with::extent<9>, tessera::with::begin<-1>, tessera::with::end<4>>
using bad = ts::sequential_type<image, nn::slice<2, -1, 4>>;
static_assert(bad::program.count >= 0);
#elif defined(SLICE_BEYOND)
// expect: [tessera.signature.range] && at_layer<0, && tessera::verdicts::range_outside<tessera::with::dimension<2>,
// tessera::with::extent<9>, tessera::with::begin<1>, tessera::with::end<12>>
using bad = ts::sequential_type<image, nn::slice<2, 1, 12>>;
static_assert(bad::program.count >= 0);
#elif defined(SLICE_DIM)
// expect: [tessera.layer.dimension] && at_layer<0, &&
// tessera::verdicts::dimension_not_there<tessera::with::dimension<7>, tessera::with::dimensions<4>>
using bad = ts::sequential_type<image, nn::slice<7, 1, 2>>;
static_assert(bad::program.count >= 0);
#elif defined(SLICE_BACKWARDS)
// expect: [tessera.signature.range] && at_layer<0, && tessera::verdicts::range_outside<tessera::with::dimension<2>,
// tessera::with::extent<9>, tessera::with::begin<5>, tessera::with::end<2>>
using bad = ts::sequential_type<image, nn::slice<2, 5, 2>>;
static_assert(bad::program.count >= 0);
#elif defined(PAD_KERNEL)
// expect: [tessera.layer.not_taken] && at_layer<0, tessera::nn::pad< &&
// tessera::verdicts::option_not_taken<tessera::with::option<0>>
using bad = ts::sequential_type<image, nn::pad<ts::padding<1, 1>>>;
static_assert(bad::program.count >= 0);
#elif defined(PAD_MANY)
// expect: [tessera.list.full] && at_layer<0, && tessera::verdicts::list_full<tessera::with::most<8>>
using bad = ts::sequential_type<image, nn::pad<ts::padding_at<1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1>>>;
static_assert(bad::program.count >= 0);
#elif defined(REPART_AXIS)
// expect: [tessera.argument.kind] && at_layer<0, && tessera::wrong_argument<tessera::kind::layer, 0,
// tessera::kind::partition, tessera::kind::axis>
using bad = ts::sequential_type<image, nn::repartition<row>>;
static_assert(bad::program.count >= 0);
#endif
