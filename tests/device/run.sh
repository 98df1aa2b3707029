#!/usr/bin/env bash
# Runs the packed cases on this machine's GPU. Prints a line a case and writes
# report.json beside itself. Exit codes: 0 all passed, 1 a case failed, 77 no GPU.
cd "$(dirname "$0")" || exit 2
[ -d cases ] || tar -xzf cases.tar.gz || exit 2
exec ./pagoda-device-runner cases report.json
