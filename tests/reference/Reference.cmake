# The f64 oracle as a target. Depends on the kernel ABI header alone; the tools
# use it too, with or without the tests.
include_guard(GLOBAL)
find_package(Threads REQUIRED)
add_library(pagoda_reference STATIC
  ${CMAKE_CURRENT_LIST_DIR}/Attention.cpp
  ${CMAKE_CURRENT_LIST_DIR}/Compare.cpp
  ${CMAKE_CURRENT_LIST_DIR}/Element.cpp)
target_include_directories(pagoda_reference PUBLIC ${CMAKE_CURRENT_LIST_DIR}/../..)
target_link_libraries(pagoda_reference PUBLIC Threads::Threads PRIVATE pagoda_flags)
