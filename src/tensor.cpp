#include <tessera/tessera.hpp>

#include <tessera/tensor/apply.ipp>
#include <tessera/tensor/change.ipp>
#include <tessera/tensor/comparing.ipp>
#include <tessera/tensor/content_hash.ipp>
#include <tessera/tensor/functions.ipp>
#include <tessera/tensor/launch.ipp>
#include <tessera/tensor/random.ipp>
#include <tessera/tensor/start.ipp>
#include <tessera/tensor/store_rendezvous.ipp>
#include <tessera/tensor/take.ipp>
#include <tessera/tensor/tensor.ipp>
#include <tessera/tensor/verbs.ipp>
