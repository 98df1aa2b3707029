# Packs for the fake driver and runs run.sh on it.
#   PACK, RUNNER: programs; DRIVER: folder of the fake libcuda.so.1; WORK: a folder.
file(REMOVE_RECURSE ${WORK})
execute_process(COMMAND ${PACK} sm_80 ${WORK}/cases --emulated COMMAND_ERROR_IS_FATAL ANY)
file(COPY ${CMAKE_CURRENT_LIST_DIR}/run.sh ${CMAKE_CURRENT_LIST_DIR}/peers.py ${RUNNER}
  DESTINATION ${WORK})
execute_process(COMMAND ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${DRIVER} ${WORK}/run.sh
  OUTPUT_VARIABLE output RESULT_VARIABLE result ERROR_VARIABLE output)
message(STATUS "${output}")
if(NOT result EQUAL 0)
  message(FATAL_ERROR "the runner ended with ${result}")
endif()
foreach(wanted "pass ldmatrix_x4_trans" "pass mma_m16n8k16_bf16" "GB/s, mma.sync" "bf16_d128.decode" " 0 failed")
  string(FIND "${output}" "${wanted}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "the runner does not say '${wanted}'")
  endif()
endforeach()
file(READ ${WORK}/report.json report)
foreach(list primitives workloads)
  string(JSON count LENGTH "${report}" ${list} ${list})
  if(count LESS 4)
    message(FATAL_ERROR "the report has ${count} ${list}")
  endif()
endforeach()
string(JSON rate GET "${report}" workloads limits copy_bytes_per_s)
string(JSON time GET "${report}" workloads workloads 0 milliseconds)
if(NOT rate GREATER 0 OR NOT time GREATER 0)
  message(FATAL_ERROR "the report measures nothing: ${rate}, ${time}")
endif()

# Peers are timed where there is a GPU, and skipped with a reason elsewhere.
find_program(python python3)
if(python)
  string(JSON peers LENGTH "${report}" peers)
  if(peers LESS 16 OR NOT output MATCHES "skipped: sdpa flash")
    message(FATAL_ERROR "${peers} results of peers")
  endif()
endif()

# What cannot be run has failed.
file(WRITE ${WORK}/broken/primitive.broken.case "not a case")
execute_process(COMMAND ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${DRIVER}
  ${RUNNER} ${WORK}/broken OUTPUT_VARIABLE output RESULT_VARIABLE result)
if(NOT result EQUAL 1 OR NOT output MATCHES "FAIL .*expected a case")
  message(FATAL_ERROR "a broken case ended with ${result}: ${output}")
endif()
