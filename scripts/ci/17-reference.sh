#!/usr/bin/env bash
# The reference is made from the headers' comments, and every warning of Doxygen about them is an error.
set -euo pipefail
cd "$(dirname "$0")/../.."

scripts/bootstrap --dev
make --no-print-directory reference
for page in structtn__kernel__record classtenon_1_1sdk_1_1KernelBuilder; do
  [ -s "build/reference/html/$page.html" ] || { echo "17-reference: $page.html was not made" >&2; exit 1; }
done
# A comment of a header without marks of its own has to arrive in the page.
grep -q 'the reason was written to why' build/reference/html/structtn__kernel__record.html
echo "17-reference: all as it should be"
