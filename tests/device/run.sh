#!/usr/bin/env bash
# Runs the packed cases and workloads on this machine's GPU, then the peers that are
# installed here. Prints a line a case and tables at the end, and writes report.json
# beside itself, within 8 minutes. Exit codes: 0 all passed, 1 something failed, 77 no
# GPU.
cd "$(dirname "$0")" || exit 2
[ -d cases ] || tar -xzf cases.tar.gz || exit 2
rm -f report*.json
status=0
# A process each, and an end for each: a kernel that faults or hangs takes its own phase
# with it.
for phase in primitives:55 cases:150 workloads:140; do
  name=${phase%:*}
  echo "== $name"
  timeout -k 5 "${phase#*:}" ./pagoda-device-runner cases "report.$name.json" "$name"
  code=$?
  [ $code = 77 ] && exit 77
  [ $code = 0 ] || status=1
  case $code in
    124) echo "FAIL $name was ended by its time limit" ;;
    125 | 126 | 127) echo "FAIL $name could not be started" ;;
    *) [ $code -lt 128 ] || echo "FAIL $name was ended by a signal" ;;
  esac
done
{
  separator="{"
  for name in primitives cases workloads; do
    [ -s "report.$name.json" ] || continue
    echo "$separator\"$name\":"
    cat "report.$name.json"
    rm "report.$name.json"
    separator=,
  done
  [ "$separator" = , ] || echo "{"
  echo "}"
} > report.json
if command -v python3 > /dev/null; then
  echo "== peers"
  timeout -k 5 100 python3 peers.py report.json 90 || echo "peers ended early"
else
  echo "skipped: peers: no python3"
fi
exit $status
