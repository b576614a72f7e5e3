# tessera_precompile(target [header...]): tessera.hpp, LibTorch's headers in it and those named, such as <torch/optim.h>, are read once
# for all files of the target, not by each of them.
function(tessera_precompile target)
  target_precompile_headers(${target} PRIVATE <tessera/tessera.hpp> ${ARGN})
endfunction()
