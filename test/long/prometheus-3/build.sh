#!/usr/bin/env bash
# Builds Prometheus 3.8.1 from its Go modules, once, and prints the path of the program. It needs Go 1.25 or
# later, and ten minutes on 2 cores. After that, `npm run test:long` runs the conformance tests with it, too.
set -euo pipefail
version=v0.308.1 # of the module; 3.8.1 of the server
cache="${XDG_CACHE_HOME:-$HOME/.cache}/prom-client-cluster/prometheus-$version"
if [ ! -x "$cache/prometheus" ]; then
  mkdir -p "$cache"
  work="$(mktemp -d)"
  trap 'rm -rf "$work"' EXIT
  cp "$(dirname "$0")/go.mod" "$work"
  cd "$work"
  # -mod=mod adds the requirements and checksums that go.mod leaves out.
  CGO_ENABLED=0 nice -n 19 go build -mod=mod -tags remove_all_sd -o "$cache/prometheus.new" \
    github.com/prometheus/prometheus/cmd/prometheus >&2
  mv "$cache/prometheus.new" "$cache/prometheus"
fi
echo "$cache/prometheus"
