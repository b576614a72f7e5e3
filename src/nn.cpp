#include <tessera/tessera.hpp>

#include <tessera/nn/file/layer_table_impl.hpp>
#include <tessera/nn/file/network_file_impl.hpp>
#include <tessera/nn/file/weights_file_impl.hpp>
#include <tessera/nn/layer/attention_impl.hpp>
#include <tessera/nn/layer/embedding_impl.hpp>
#include <tessera/nn/layer/forward_impl.hpp>
#include <tessera/nn/layer/interpolate_impl.hpp>
#include <tessera/nn/layer/losses_impl.hpp>
#include <tessera/nn/layer/normalisation_impl.hpp>
#include <tessera/nn/layer/pooling_impl.hpp>
#include <tessera/nn/layer/projection_impl.hpp>
#include <tessera/nn/network/check_replicas_impl.hpp>
#include <tessera/nn/network/executor_impl.hpp>
#include <tessera/nn/network/executor_run_impl.hpp>
#include <tessera/nn/network/observer_impl.hpp>
#include <tessera/nn/network/placed_layer_impl.hpp>
#include <tessera/nn/network/program_impl.hpp>
#include <tessera/nn/parameter/gathered_parameter_impl.hpp>
#include <tessera/nn/parameter/grad_norm_impl.hpp>
#include <tessera/nn/parameter/parameter_impl.hpp>
#include <tessera/nn/parameter/reduce_gradients_impl.hpp>
#include <tessera/nn/parameter/state_dict_impl.hpp>
#include <tessera/nn/parameter/state_tensor_impl.hpp>

namespace tessera::nn::engine {

#define TESSERA_HELD(description) \
  template std::vector<at::Tensor> forward_described<description>(const void*, const call&);
TESSERA_DESCRIPTIONS(TESSERA_HELD)
#undef TESSERA_HELD

}  // namespace tessera::nn::engine
