# A runner needs the C library and its loader, no LLVM, no C++ library, and no function
# that only the newest C libraries have.
#   cmake -DRUNNER=pagoda-device-runner -P LinksTest.cmake
find_program(readelf NAMES readelf llvm-readelf llvm-readelf-22
  HINTS /usr/lib/llvm-22/bin REQUIRED)
execute_process(COMMAND ${readelf} -d ${RUNNER} OUTPUT_VARIABLE text
  COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "NEEDED[^\n]*\\[[^]]*\\]" needed "${text}")
if(NOT needed)
  message(FATAL_ERROR "no needed library found in:\n${text}")
endif()
foreach(entry ${needed})
  string(REGEX REPLACE ".*\\[(.*)\\]" "\\1" name "${entry}")
  if(NOT name MATCHES "^(libm|libc|libdl|libpthread|ld-linux.*)\\.so")
    message(FATAL_ERROR "${RUNNER} needs ${name}")
  endif()
endforeach()
execute_process(COMMAND ${readelf} -W --dyn-syms ${RUNNER} OUTPUT_VARIABLE symbols
  COMMAND_ERROR_IS_FATAL ANY)
if(NOT symbols MATCHES "UND dlopen")
  message(FATAL_ERROR "no dlopen among the symbols that ${RUNNER} needs:\n${symbols}")
endif()
if(symbols MATCHES "UND (arc4random[^ \n]*)")
  message(FATAL_ERROR "${RUNNER} needs ${CMAKE_MATCH_1}, which glibc has since 2.36 only")
endif()
