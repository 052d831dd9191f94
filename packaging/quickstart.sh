#!/usr/bin/env bash
# From a fresh clone to a trained model: installs what the build needs, builds the programs, and runs
# the digits federation on this machine. May be run again: what is done is not done twice.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; }
on_error() { printf '\nquickstart: stopped at: %s\n' "$current" >&2; }
trap on_error ERR

current="installing Debian packages"
step "What the build needs"
packaging/dependencies.sh build

current="building"
step "Building the programs (some minutes the first time)"
# Without tests, which are most of the code. A build folder that has them keeps them.
[ -f build/release/CMakeCache.txt ] || cmake --preset release -DBUILD_TESTING=OFF >/dev/null
cmake --build --preset release --target programs

current="the digits federation"
step "Ten clients train one model, each on digits of its own"
fl=build/release/bin/fl
"$fl" run -f manifests/examples/digits/model.yaml -f manifests/examples/digits/clients.yaml \
  -f manifests/examples/digits/job.yaml

current="reading the registry"
if command -v skopeo >/dev/null; then
  step "The same registry, read by another tool: skopeo inspect oci:fl-registry/digits:latest"
  skopeo inspect oci:fl-registry/digits:latest
fi

cat <<END

The model's versions are in fl-registry/, the programs in build/release/bin/. What to try next:

  $fl models list --registry file:fl-registry       every version, with its metrics
  $fl models history digits --registry file:fl-registry
  $fl run --help                                    your own data, other algorithms
  less manifests/examples/digits/job.yaml           the three objects behind this run
END
command -v skopeo >/dev/null || echo "  apt-get install skopeo                            then: skopeo inspect oci:fl-registry/digits:latest"
