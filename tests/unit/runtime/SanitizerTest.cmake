# Builds the runtime and its tests with a sanitizer preset and runs them there.
#   cmake -DSOURCE=.. -DWORK=.. -DPRESET=asan -P SanitizerTest.cmake
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status
    OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}: ${status}\n${text}")
  endif()
endfunction()

set(launcher)
find_program(ccache ccache)
if(ccache)
  set(launcher -DCMAKE_CXX_COMPILER_LAUNCHER=${ccache})
endif()
# Less optimisation than the preset's: this build is timed with the tests.
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK} --preset ${PRESET} ${launcher}
  "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -gline-tables-only")
run(${CMAKE_COMMAND} --build ${WORK}
  --target pagoda-runtime-tests pagoda-cache-property)
# Sanitized code is several times slower: fewer random operations, and the other
# programs that the build would make are not needed.
set(ENV{PAGODA_PROPERTY_CASES} 6)
set(ENV{TSAN_OPTIONS} "halt_on_error=1 $ENV{TSAN_OPTIONS}")
set(ENV{UBSAN_OPTIONS} "halt_on_error=1 print_stacktrace=1 $ENV{UBSAN_OPTIONS}")
run(${WORK}/bin/pagoda-runtime-tests --gtest_brief=1)
run(${WORK}/bin/pagoda-cache-property)
