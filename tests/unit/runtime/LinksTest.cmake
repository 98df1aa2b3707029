# The runtime needs the C++ library, threads and the dynamic loader, and no LLVM.
#   cmake -DLIBRARY=libpagoda_runtime.so -P LinksTest.cmake
find_program(readelf NAMES readelf llvm-readelf llvm-readelf-22
  HINTS /usr/lib/llvm-22/bin REQUIRED)
execute_process(COMMAND ${readelf} -d ${LIBRARY} OUTPUT_VARIABLE text
  COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "NEEDED[^\n]*\\[[^]]*\\]" needed "${text}")
if(NOT needed)
  message(FATAL_ERROR "no needed library found in:\n${text}")
endif()
foreach(entry ${needed})
  string(REGEX REPLACE ".*\\[(.*)\\]" "\\1" name "${entry}")
  if(NOT name MATCHES
     "^(libstdc\\+\\+|libm|libgcc_s|libc|libdl|libpthread|ld-linux.*)\\.so")
    message(FATAL_ERROR "${LIBRARY} needs ${name}")
  endif()
endforeach()
