# How the project's targets are made. A module is a folder of lib/: its sources become the library
# fl_<name>, its *_test.cc files the program <name>_test, its testing/ folder the library
# fl_<name>_testing. Files are found by their place, so that no source or test is left out.

add_library(fl_options INTERFACE)
target_compile_options(fl_options INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wimplicit-fallthrough -Werror
  # A designated initialiser leaves the other fields at their defaults on purpose.
  -Wno-missing-field-initializers
  # A sum has one value: the compiler may not fuse a multiplication into an addition.
  -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # libstdc++'s own std::stable_sort calls what it marks as deprecated.
  target_compile_options(fl_options INTERFACE -Wno-deprecated-declarations)
endif()
if(FL_SANITIZE)
  target_compile_options(fl_options INTERFACE -fsanitize=${FL_SANITIZE} -fno-sanitize-recover=all
                         -fno-omit-frame-pointer)
  target_link_options(fl_options INTERFACE -fsanitize=${FL_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # With sanitizers g++ 12 takes members of std::regex and std::variant for uninitialised.
    target_compile_options(fl_options INTERFACE -Wno-maybe-uninitialized)
  endif()
  if(FL_SANITIZE MATCHES thread)
    # g++ warns that fences are not modelled; Asio uses one in a header.
    target_compile_options(fl_options INTERFACE -Wno-tsan)
  endif()
endif()

# fl_module(NAME DEPS module... LIBS external-target... TEST_LIBS target...)
function(fl_module name)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS;TEST_LIBS" ${ARGN})
  set(dir ${CMAKE_CURRENT_SOURCE_DIR}/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${dir}/*.cc)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${dir}/*.h)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  set(testing_sources ${sources})
  list(FILTER testing_sources INCLUDE REGEX "/testing/")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$|/testing/")
  set(testing_headers ${headers})
  list(FILTER testing_headers INCLUDE REGEX "/testing/")
  list(FILTER headers EXCLUDE REGEX "/testing/")
  list(TRANSFORM ARG_DEPS PREPEND fl_ OUTPUT_VARIABLE deps)

  add_library(fl_${name} STATIC ${sources} ${CMAKE_CURRENT_SOURCE_DIR}/empty.cc)
  set_target_properties(fl_${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_sources(fl_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${CMAKE_CURRENT_SOURCE_DIR}
                 FILES ${headers})
  target_link_libraries(fl_${name} PUBLIC ${deps} Threads::Threads
                        PRIVATE ${ARG_LIBS} $<BUILD_INTERFACE:fl_options>)
  if(NOT BUILD_TESTING)
    return()
  endif()

  set(testing_target)
  if(testing_sources OR testing_headers)
    set(testing_target fl_${name}_testing)
    add_library(${testing_target} STATIC ${testing_sources} ${CMAKE_CURRENT_SOURCE_DIR}/empty.cc)
    target_sources(${testing_target} PUBLIC FILE_SET HEADERS BASE_DIRS ${CMAKE_CURRENT_SOURCE_DIR}
                   FILES ${testing_headers})
    target_link_libraries(${testing_target} PUBLIC fl_${name} GTest::gmock fl_options)
    foreach(dep ${deps})
      if(TARGET ${dep}_testing)
        target_link_libraries(${testing_target} PUBLIC ${dep}_testing)
      endif()
    endforeach()
  endif()

  if(tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE fl_${name} ${testing_target} ${ARG_LIBS}
                          ${ARG_TEST_LIBS} GTest::gmock_main fl_options)
    foreach(dep ${deps})
      if(TARGET ${dep}_testing)
        target_link_libraries(${name}_test PRIVATE ${dep}_testing)
      endif()
    endforeach()
    if(FL_SANITIZE)
      target_compile_options(${name}_test PRIVATE -O0)  # compiles in half the time
    endif()
    set_target_properties(${name}_test PROPERTIES
                          RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
    if(EXISTS ${dir}/testdata)
      target_compile_definitions(${name}_test PRIVATE FL_TESTDATA="${dir}/testdata")
    endif()
    gtest_discover_tests(${name}_test TEST_PREFIX ${name}/ DISCOVERY_MODE PRE_TEST
                         PROPERTIES TIMEOUT 300 LABELS unit)
  endif()
endfunction()

# fl_program(NAME DEPS module... LIBS external-target...): the program NAME from cmd/NAME/*.cc, once
# there are any.
function(fl_program name)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cc)
  if(NOT sources)
    return()
  endif()
  list(TRANSFORM ARG_DEPS PREPEND fl_ OUTPUT_VARIABLE deps)
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${deps} ${ARG_LIBS} fl_options)
  add_dependencies(programs ${name})
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()
