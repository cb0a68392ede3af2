#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Rewrites the golden files NAME.plan and NAME.cu from keys.txt. Read the difference before committing it.
# usage: tests/golden/update_goldens.sh [BUILD_DIRECTORY]    default: build
set -euo pipefail

build=$(realpath "${1:-build}")
cd "$(dirname "${BASH_SOURCE[0]}")"
ninja -C "$build" tests/unit/test_golden
rm -f -- *.plan *.cu
"$build/tests/unit/test_golden" --write
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git --no-pager diff --stat -- .
fi
