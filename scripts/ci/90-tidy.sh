#!/usr/bin/env bash
# clang-tidy over the host, the SDK and the plugins, where that tool is installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
scripts/tidy
