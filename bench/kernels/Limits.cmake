# This machine's limits, measured; needs neither compiler nor runtime. The CLI
# and the benchmarks quote their figures against it.
include_guard(GLOBAL)
find_package(Threads REQUIRED)
add_library(pagoda_limits STATIC ${CMAKE_CURRENT_LIST_DIR}/Limits.cpp)
target_include_directories(pagoda_limits PUBLIC ${CMAKE_CURRENT_LIST_DIR}/../..)
target_link_libraries(pagoda_limits PUBLIC Threads::Threads PRIVATE pagoda_flags)
