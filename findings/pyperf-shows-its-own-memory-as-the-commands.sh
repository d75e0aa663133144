#!/usr/bin/env bash
# pyperf 2.9.0 (PyPI), Python 3, Linux.
#
# `pyperf command` reports for `sleep` some 12 MiB as `command_max_rss`. The process itself never has more than 2 MiB, as its
# `/proc/PID/status` says. The figure is that of pyperf: Linux counts as the peak of a process also the memory of the program that it
# was before `exec`, and a process that was started with `vfork` or `posix_spawn` was the one that started it. `wait4` and
# `getrusage` pass that on. So every tool that starts a command and reads `ru_maxrss` shows at least its own size, and a command that
# becomes smaller than the tool seems to stay as it is. A small process has to stand between both.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv environment
environment/bin/pip install --quiet --disable-pip-version-check pyperf==2.9.0
environment/bin/python -m pyperf command --quiet --processes 1 --warmups 0 --values 1 --loops 1 --output result.json -- sleep 0.1 > pyperf.log
environment/bin/python - <<'PY'
import re, subprocess, time

import pyperf

reported = pyperf.Benchmark.load("result.json").get_metadata()["command_max_rss"] / 2**20
process = subprocess.Popen(["sleep", "1"])
time.sleep(0.3)
status = open(f"/proc/{process.pid}/status").read()
process.wait()
actual = int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) / 2**10
print(f"pyperf reports {reported:.1f} MiB for `sleep`; the kernel says {actual:.1f} MiB of the process itself")
assert actual < 3 and reported > 2 * actual, "the behaviour changed"
PY
