# A binary needs these libraries and the dynamic loader, nothing else: no LLVM, above all.
# A runner besides takes its driver by dlopen, and no function that only the newest C
# libraries have.
#   cmake -DBINARY=libpagoda_runtime.so -DLIBRARIES=libc,libm [-DRUNNER=ON] -P LinksTest.cmake
cmake_minimum_required(VERSION 3.25)
find_program(readelf NAMES readelf llvm-readelf llvm-readelf-22
  HINTS /usr/lib/llvm-22/bin REQUIRED)
execute_process(COMMAND ${readelf} -d ${BINARY} OUTPUT_VARIABLE text
  COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "NEEDED[^\n]*\\[[^]]*\\]" needed "${text}")
if(NOT needed)
  message(FATAL_ERROR "no needed library found in:\n${text}")
endif()
string(REPLACE "," ";" allowed "${LIBRARIES}")
foreach(entry ${needed})
  string(REGEX REPLACE ".*\\[([^.]*).*\\]" "\\1" name "${entry}")
  if(NOT name IN_LIST allowed AND NOT name MATCHES "^ld-linux")
    message(FATAL_ERROR "${BINARY} needs ${name}, expected of ${LIBRARIES}")
  endif()
endforeach()
if(NOT RUNNER)
  return()
endif()
execute_process(COMMAND ${readelf} -W --dyn-syms ${BINARY} OUTPUT_VARIABLE symbols
  COMMAND_ERROR_IS_FATAL ANY)
if(NOT symbols MATCHES "UND dlopen")
  message(FATAL_ERROR "no dlopen among the symbols that ${BINARY} needs:\n${symbols}")
endif()
if(symbols MATCHES "UND (arc4random[^ \n]*)")
  message(FATAL_ERROR "${BINARY} needs ${CMAKE_MATCH_1}, which glibc has since 2.36 only")
endif()
