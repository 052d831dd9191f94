#!/usr/bin/env bash
# Installs the Debian packages of the groups that are named, those that are missing:
#
#     packaging/dependencies.sh build         to compile the programs
#     packaging/dependencies.sh build test    and to build and run every test
#     packaging/dependencies.sh --list build  only says which
#
# This is the one list of what the project stands on; packaging/quickstart.sh and test/run.sh use it.
set -euo pipefail

packages() {
  case "$1" in
    build)
      echo build-essential cmake ninja-build ccache \
        libboost1.81-dev libcurl4-openssl-dev libssl-dev nlohmann-json3-dev libyaml-cpp-dev \
        libeigen3-dev prometheus-cpp-dev libcli11-dev libspdlog-dev libfmt-dev
      ;;
    test)
      # GoogleTest; the checks of the sources and the fuzzers; a reader of OCI registries; the shells
      # that completions are for and a terminal to see the programs in; peers for keys and TLS.
      echo libgtest-dev libgmock-dev \
        clang-19 clang-format-19 clang-tidy-19 libclang-rt-19-dev \
        skopeo zsh fish bash-completion tmux \
        openssh-client openssl curl git procps python3 python3-venv
      ;;
    *)
      echo "there is no group \"$1\": use build, test" >&2
      return 4
      ;;
  esac
}

only_list=false
wanted=()
for argument in "$@"; do
  case "$argument" in
    --list) only_list=true ;;
    *)
      list=$(packages "$argument")
      read -ra group <<<"$list"
      wanted+=("${group[@]}")
      ;;
  esac
done
if [ ${#wanted[@]} -eq 0 ]; then
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
  exit 4
fi
if $only_list; then
  printf '%s\n' "${wanted[@]}"
  exit 0
fi

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "This script installs Debian packages (Debian 12 is what the project is built and tested on)" >&2
  echo "and there is no apt-get here. What is needed, by Debian's names:" >&2
  printf '  %s\n' "${wanted[@]}" >&2
  exit 1
fi

missing=()
for package in "${wanted[@]}"; do
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "Packages are missing, and only root can install them. As root, run:" >&2
    echo "  apt-get update && apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "Installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null >/dev/null; then
  # shellcheck source=/dev/null
  . /etc/os-release
  echo "apt-get could not install them on ${PRETTY_NAME:-this system}." >&2
  echo "The project is built and tested on Debian 12, where all of them exist." >&2
  exit 1
fi
