# Attention on other people's matrix products, for the benchmarks. The libraries
# are loaded at run time; those that a machine lacks are skipped.
include_guard(GLOBAL)
add_library(pagoda_peers STATIC
  ${CMAKE_CURRENT_LIST_DIR}/RowMath.cpp
  ${CMAKE_CURRENT_LIST_DIR}/Sgemm.cpp
  ${CMAKE_CURRENT_LIST_DIR}/SgemmAttention.cpp)
target_include_directories(pagoda_peers PUBLIC ${CMAKE_CURRENT_LIST_DIR}/../..)
target_link_libraries(pagoda_peers PUBLIC pagoda_runtime pagoda_reference PRIVATE pagoda_flags ${CMAKE_DL_LIBS})
