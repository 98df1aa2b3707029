# The format of packed cases as a target. What runs exported candidates uses it
# too, with or without the tests.
include_guard(GLOBAL)
include(${CMAKE_CURRENT_LIST_DIR}/../reference/Reference.cmake)
add_library(pagoda_case_image STATIC ${CMAKE_CURRENT_LIST_DIR}/CaseImage.cpp)
target_link_libraries(pagoda_case_image PUBLIC pagoda_reference PRIVATE pagoda_flags)
