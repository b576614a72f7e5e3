# headers_alone: compiles each header over LibTorch on its own, but for LibTorch's, which are read once. CMake's check
# of the other floors would read them for each, which took more than half of all that clang compiles.

set(alone "")
foreach(floor IN ITEMS torch header_only)
  set_target_properties(tessera_${floor} PROPERTIES VERIFY_INTERFACE_HEADER_SETS OFF)
  get_target_property(headers tessera_${floor} HEADER_SET)
  foreach(header IN LISTS headers)
    cmake_path(RELATIVE_PATH header BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/include OUTPUT_VARIABLE name)
    set(source ${PROJECT_BINARY_DIR}/headers_alone/${name}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include <${name}>\n")
    list(APPEND alone ${source})
  endforeach()
endforeach()
add_library(headers_alone OBJECT EXCLUDE_FROM_ALL ${alone})
target_link_libraries(headers_alone PRIVATE tessera::header_only)
target_precompile_headers(headers_alone PRIVATE <ATen/ATen.h> <torch/csrc/autograd/engine.h> <torch/csrc/autograd/function.h>)
set_target_properties(headers_alone PROPERTIES JOB_POOL_COMPILE tessera_torch)
