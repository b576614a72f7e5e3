# The target docs: the reference of public names, by Doxygen, in html/ of the build folder (docs/Doxyfile.in).

find_package(Doxygen QUIET)
find_package(Python3 QUIET COMPONENTS Interpreter)  # expands lists of macros
configure_file(docs/Doxyfile.in ${PROJECT_BINARY_DIR}/Doxyfile @ONLY)
if(DOXYGEN_FOUND AND Python3_FOUND)
  add_custom_target(docs COMMAND Doxygen::doxygen ${PROJECT_BINARY_DIR}/Doxyfile VERBATIM)
  if(TESSERA_TESTS AND DOXYGEN_VERSION MATCHES "^1[.]9[.]4")  # another version warns of other things
    add_test(NAME project.reference COMMAND Doxygen::doxygen ${PROJECT_BINARY_DIR}/Doxyfile)
    set_tests_properties(project.reference PROPERTIES TIMEOUT 120 LABELS project)
  endif()
else()
  add_custom_target(docs COMMAND ${CMAKE_COMMAND} -E echo "docs needs doxygen and python3 (Debian, Ubuntu: apt-get install doxygen python3)"
                    COMMAND ${CMAKE_COMMAND} -E false VERBATIM)
endif()
