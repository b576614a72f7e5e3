# cmake --install: the headers, the library where it is built, a CMake package with a component for each floor, and the
# licence.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(folder ${CMAKE_INSTALL_DATADIR}/cmake/tessera)
set(for_any_machine ARCH_INDEPENDENT)
if(TESSERA_COMPILED)
  set(for_any_machine "")
endif()

foreach(floor IN LISTS tessera_floors)
  install(TARGETS tessera_${floor} EXPORT tessera_${floor} FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
          FILE_SET definitions DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT tessera_${floor} NAMESPACE tessera:: DESTINATION ${folder} FILE tessera_${floor}.cmake)
endforeach()

# tessera_second_name(name floor): a component that is another one of the package.
macro(tessera_second_name name floor)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/package/tessera_${name}.cmake CONTENT "add_library(tessera::${name} ALIAS tessera::${floor})\n")
  install(FILES ${PROJECT_BINARY_DIR}/package/tessera_${name}.cmake DESTINATION ${folder})
  list(APPEND tessera_floors ${name})
endmacro()
if(TESSERA_COMPILED)
  tessera_second_name(compiled tessera)
elseif(TESSERA_COMM)
  tessera_second_name(tessera header_only)  # without a library the headers are all that there is, and programs link as before
endif()

configure_file(cmake/tesseraConfig.cmake.in ${PROJECT_BINARY_DIR}/package/tesseraConfig.cmake @ONLY)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/tesseraConfigVersion.cmake
  COMPATIBILITY SameMinorVersion ${for_any_machine})
install(FILES ${PROJECT_BINARY_DIR}/package/tesseraConfig.cmake ${PROJECT_BINARY_DIR}/package/tesseraConfigVersion.cmake
              cmake/tesseraNeeds.cmake cmake/tesseraPrecompile.cmake cmake/FindLibTorch.cmake cmake/FindNCCL.cmake
        DESTINATION ${folder})
install(FILES LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tessera)
