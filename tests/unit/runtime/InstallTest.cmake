# Installs the runtime into a fresh directory, builds the example against it with
# find_package and again with pkg-config, and runs both on the library KERNELS.
#   cmake -DBUILD=.. -DGENERATOR=.. -DWORK=.. -DEXAMPLES=.. -DKERNELS=.. -DCC=..
#         -DCXX=.. -P ..
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status
    OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}: ${status}\n${text}")
  endif()
  message(STATUS "${text}")
endfunction()

file(REMOVE_RECURSE ${WORK})
set(prefix ${WORK}/prefix)
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix} --component runtime)

# The build's generator: the default one needs make, which a machine may lack.
run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${EXAMPLES} -B ${WORK}/example
  -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_C_COMPILER=${CC}
  -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_C_FLAGS=${FLAGS}
  -DCMAKE_CXX_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} --build ${WORK}/example)
run(${WORK}/example/attention_layer ${KERNELS})

file(GLOB pc ${prefix}/lib*/pkgconfig ${prefix}/lib/*/pkgconfig)
find_program(pkgconfig NAMES pkg-config pkgconf)
if(pkgconfig)
  set(ENV{PKG_CONFIG_PATH} ${pc})
  execute_process(COMMAND ${pkgconfig} --cflags --libs pagoda
    OUTPUT_VARIABLE flags RESULT_VARIABLE status
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "pkg-config does not find pagoda in ${pc}")
  endif()
  separate_arguments(flags UNIX_COMMAND "${flags}")
  separate_arguments(more UNIX_COMMAND "${FLAGS}")
  get_filename_component(libdir ${pc} DIRECTORY)
  run(${CC} -std=c99 -pedantic -Wall -Wextra -Werror ${more}
    ${EXAMPLES}/attention_layer.c -o ${WORK}/by_pkg_config ${flags} -lm
    -Wl,-rpath,${libdir})
  run(${WORK}/by_pkg_config ${KERNELS})
else()
  message("skipped: pkg-config is not installed")
endif()

# Every installed header can be included first and alone.
file(GLOB headers RELATIVE ${prefix}/include ${prefix}/include/pagoda/*.h)
foreach(header ${headers})
  file(WRITE ${WORK}/header.cpp "#include <${header}>\nint main() {}\n")
  run(${CXX} -std=c++20 -fsyntax-only -Wall -Wextra -Werror
    -I${prefix}/include ${WORK}/header.cpp)
endforeach()
