// No include guard: reads the file that TESSERA_LOOPS names once for each set of instructions, in a namespace that says
// how many bytes one of them takes. A function is compiled for the instructions that are said where it is written,
// whoever calls it, so loops are written once.
namespace of_any_machine {
#include TESSERA_LOOPS
}  // namespace of_any_machine

#ifdef __x86_64__
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
namespace of_avx2 {
#include TESSERA_LOOPS
}  // namespace of_avx2
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
