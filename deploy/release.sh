#!/usr/bin/env bash
# Builds the binaries of a release into dist/, with checksums.
#
#   deploy/release.sh v1.2.3                      # all targets
#   deploy/release.sh v1.2.3 linux/amd64          # only these
#
# The binaries are static, and the same source and Go give the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:-}
if ! [[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; then
  echo "usage: deploy/release.sh vMAJOR.MINOR.PATCH [OS/ARCH ...]" >&2
  exit 2
fi
shift
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(linux/amd64 linux/arm64 darwin/amd64 darwin/arm64)

out=${DIST:-dist}
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

archives=()
for target in "${targets[@]}"; do
  os=${target%/*} arch=${target#*/}
  name="tripline_${version#v}_${os}_${arch}"
  echo "-- $name"
  mkdir -p "$work/$name"
  GOOS=$os GOARCH=$arch CGO_ENABLED=0 go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X main.version=$version" -o "$work/$name/tripline" ./cmd/tripline
  cp LICENSE README.md CHANGELOG.md docs/reference.yaml deploy/systemd/tripline.service "$work/$name/"
  # Nothing of the machine or the hour: GNU tar's options, left out elsewhere.
  same=()
  if tar --version 2>/dev/null | grep -q GNU; then
    same=(--sort=name --owner=0 --group=0 --numeric-owner --mtime=@0)
  fi
  tar -C "$work" ${same[@]+"${same[@]}"} -cf - "$name" | gzip -n > "$out/$name.tar.gz"
  archives+=("$name.tar.gz")
done

cd "$out"
if command -v sha256sum >/dev/null; then
  sha256sum "${archives[@]}" > checksums.txt
else
  shasum -a 256 "${archives[@]}" > checksums.txt
fi
cat checksums.txt
