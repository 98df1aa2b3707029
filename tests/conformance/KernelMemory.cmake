# Generates kernels of some shapes and runs them where a checker watches each
# access; then forbids memory that they need, to see that the checker does watch.
#   cmake -DCHECKER=asan|valgrind -DPAGODA=.. -DCC=.. -DPROGRAM=.. -DSHAPES=..
#         -DWORK=.. -P KernelMemory.cmake
file(MAKE_DIRECTORY ${WORK})
set(library ${WORK}/libkernels.so)

if(CHECKER STREQUAL "valgrind")
  find_program(memcheck valgrind)
  if(NOT memcheck)
    message("skipped: valgrind is not installed")
    return()
  endif()
  # It knows AVX2 and nothing wider.
  execute_process(COMMAND ${CC} -dumpmachine OUTPUT_VARIABLE triple)
  set(target)
  if(triple MATCHES x86_64)
    set(target --target x86-64-v3)
  endif()
  set(run ${memcheck} --quiet --error-exitcode=9 ${PROGRAM})
  set(complaint "Invalid read")
else()
  set(target)
  set(run ${PROGRAM})
  set(complaint "AddressSanitizer: use-after-poison")
  # Libraries are opened once and stay.
  set(ENV{ASAN_OPTIONS} "detect_leaks=0 $ENV{ASAN_OPTIONS}")
endif()

function(command)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status
    OUTPUT_VARIABLE text ERROR_VARIABLE text)
  set(status ${status} PARENT_SCOPE)
  set(text "${text}" PARENT_SCOPE)
endfunction()

foreach(shape IN LISTS SHAPES)
  separate_arguments(options UNIX_COMMAND "${shape} --name kernels")
  if(CHECKER STREQUAL "valgrind")
    command(${PAGODA} gen ${options} ${target} -o ${WORK})
  else()
    # clang instruments functions that ask for it.
    set(ir ${WORK}/kernels.ll)
    execute_process(COMMAND ${PAGODA} gen ${options} --emit=llvm
      OUTPUT_VARIABLE text RESULT_VARIABLE status)
    string(REGEX REPLACE "\nattributes (#[0-9]+) = { nounwind \"" "\nattributes \\1 = { sanitize_address nounwind \"" marked "${text}")
    if(marked STREQUAL text)
      message(FATAL_ERROR "${shape}: no function to instrument (${status})")
    endif()
    file(WRITE ${ir} "${marked}")
    command(${CC} -O1 -fsanitize=address -shared -fPIC -Wno-override-module
      ${ir} -o ${library})
  endif()
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${shape}: ${status}\n${text}")
  endif()
  command(${run} ${library})
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${shape}: ${status}\n${text}")
  endif()
  message("${text}")
endforeach()

command(${run} ${library} --forbid-a-valid-row)
if(status EQUAL 0 OR NOT text MATCHES "${complaint}")
  message(FATAL_ERROR "a forbidden row was read and nobody objected: ${status}\n${text}")
endif()
