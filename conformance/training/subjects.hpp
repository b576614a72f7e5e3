#pragma once
// The subjects of training: a reader each, in a file of its own or with those it shares most with.

#include "reading.hpp"

namespace conformance::training {

task attention(reading& c);
task attention_block(reading& c);
task bandwidth(reading& c);
task boundary(reading& c);
task bundle(reading& c);
task change(reading& c);
task conversion(reading& c);
task cross_entropy(reading& c);
task data_parallel(reading& c);
task ema(reading& c);
task embedding(reading& c);
task experts(reading& c);
task initial_values(reading& c);
task launch(reading& c);
task linear(reading& c);
task loader(reading& c);
task margin(reading& c);
task mesh(reading& c);
task mlp(reading& c);
task norm(reading& c);
task pipeline(reading& c);
task product(reading& c);
task profile(reading& c);
task scaler(reading& c);
task schedule(reading& c);
task sharded_optimizer(reading& c);
task shards(reading& c);
task stack(reading& c);
task stages(reading& c);
task state(reading& c);
task transformer_block(reading& c);
task watch(reading& c);

}  // namespace conformance::training
