#include <tessera/tessera.hpp>

#include <tessera/tensor/apply_impl.hpp>
#include <tessera/tensor/box/content_hash_impl.hpp>
#include <tessera/tensor/change/change_impl.hpp>
#include <tessera/tensor/comparing_impl.hpp>
#include <tessera/tensor/distribute_impl.hpp>
#include <tessera/tensor/functions_impl.hpp>
#include <tessera/tensor/launch_impl.hpp>
#include <tessera/tensor/overlap_impl.hpp>
#include <tessera/tensor/random_impl.hpp>
#include <tessera/tensor/store_rendezvous_impl.hpp>
#include <tessera/tensor/tensor_impl.hpp>
#include <tessera/tensor/verbs_impl.hpp>
