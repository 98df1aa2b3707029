#!/usr/bin/env bash
# Runs the packed cases and workloads on this machine's GPU, then the peers that are
# installed here. Prints a line a case and tables at the end, and writes report.json
# beside itself, within 8 minutes. Exit codes: 0 all passed, 1 something failed, 77 no
# GPU.
cd "$(dirname "$0")" || exit 2
[ -d cases ] || tar -xzf cases.tar.gz || exit 2
./pagoda-device-runner cases report.json
status=$?
[ $status = 77 ] && exit 77
if command -v python3 > /dev/null; then
  timeout 150 python3 peers.py report.json 110 || echo "peers ended early"
else
  echo "skipped: peers: no python3"
fi
exit $status
