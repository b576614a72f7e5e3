# tessera_precompile(target [header...] [SHARED_WITH target...]): tessera.hpp, LibTorch's headers in it and those named,
# such as <torch/optim.h>, are read once for all files of the target, not by each of them; and for all files of the
# targets that share it. These link the same form of Tessera under the same compile options and definitions, else the
# compiler reads the headers again, or says so.
function(tessera_precompile target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SHARED_WITH")
  target_precompile_headers(${target} PRIVATE <tessera/tessera.hpp> ${arg_UNPARSED_ARGUMENTS})
  foreach(other IN LISTS arg_SHARED_WITH)
    target_precompile_headers(${other} REUSE_FROM ${target})
  endforeach()
endfunction()
