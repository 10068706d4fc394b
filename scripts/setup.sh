#!/usr/bin/env bash
# Brings what a target needs, and nothing that is already there. Called by the Makefile:
#   setup.sh packages   the npm packages of package-lock.json; fails when they cannot be had
#   setup.sh peers      Debian packages of programs that tests and benchmarks talk to; without root, apt or network the tests
#                       that need one are skipped, so this never fails
# Must not stop or start any service, and must not reinstall what fits.
set -u
cd "$(dirname "$0")/.."

# program:package, in the order they are asked for
peers=(mosquitto:mosquitto mosquitto_pub:mosquitto-clients nngcat:nng-utils nanocat:nanomsg-utils openssl:openssl redis-server:redis-server
  chromium:chromium promtool:prometheus gcc:gcc groff:groff fish:fish zsh:zsh faketime:faketime)
# files that stand for a package without a program
headers=(/usr/include/nng/nng.h:libnng-dev)
policy=/usr/sbin/policy-rc.d

say() { echo "setup: $*" >&2; }

# Whether node_modules holds what package-lock.json asks for: every package in its version; optional ones may be missing.
# npm itself keeps the list of what it has installed.
fits() {
  [ -f node_modules/.package-lock.json ] || return 1
  node -e '
    const read = (file) => JSON.parse(require("node:fs").readFileSync(file, "utf8")).packages;
    const [wanted, have] = [read("package-lock.json"), read("node_modules/.package-lock.json")];
    const missing = Object.keys(wanted).filter((name) => {
      if (name === "" || wanted[name].link) return false;
      return have[name] ? have[name].version !== wanted[name].version : !(wanted[name].optional || wanted[name].devOptional);
    });
    process.exit(missing.length === 0 ? 0 : 1);
  '
}

packages() {
  local major minor
  if ! command -v node >/dev/null; then say "Node.js 20.19 or newer is needed"; exit 1; fi
  IFS=. read -r major minor _ <<<"$(node -p process.versions.node)"
  if ((major < 20 || (major == 20 && minor < 19))); then say "Node.js 20.19 or newer is needed, this is $(node -v)"; exit 1; fi
  if fits; then return 0; fi
  say "npm ci"
  # Addons are compiled against the headers that came with this Node.js, where it brought them; nothing is downloaded for it.
  local prefix
  prefix=$(node -p 'require("node:path").dirname(require("node:path").dirname(fs.realpathSync(process.execPath)))')
  if [ -f "$prefix/include/node/node.h" ]; then export npm_config_nodedir="$prefix"; fi
  npm ci --no-audit --no-fund --loglevel=error </dev/null || { say "npm ci failed"; exit 1; }
}

# Debian starts a service as soon as its package is installed; a policy file that says 101 forbids it for that while.
hold_services() {
  [ -e "$policy" ] && return 0
  printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy" && trap 'rm -f "$policy"' EXIT
}

peers() {
  local missing=() row
  for row in "${peers[@]}"; do
    command -v "${row%%:*}" >/dev/null || [ -x "/usr/sbin/${row%%:*}" ] || missing+=("${row##*:}")
  done
  for row in "${headers[@]}"; do [ -e "${row%%:*}" ] || missing+=("${row##*:}"); done
  ((${#missing[@]} == 0)) && return 0
  if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
    say "not installed: ${missing[*]} (root and apt are needed); tests that need them are skipped"
    return 0
  fi
  say "apt-get install ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  hold_services
  local apt=(apt-get -q -o DPkg::Lock::Timeout=120 -o Acquire::Retries=2)
  {
    timeout 180 "${apt[@]}" update
    timeout 600 "${apt[@]}" install -y --no-install-recommends "${missing[@]}" ||
      # One package that cannot be had must not take the others with it.
      for row in "${missing[@]}"; do timeout 120 "${apt[@]}" install -y --no-install-recommends "$row"; done
  } </dev/null >apt.log 2>&1
  for row in "${missing[@]}"; do
    if ! dpkg -s "$row" >/dev/null 2>&1; then say "$row could not be installed (apt.log); tests that need it are skipped"; continue; fi
    # The broker is wanted as a program to start in tests, not as a service that takes port 1883 at the next boot.
    if [ "$row" = mosquitto ] && command -v systemctl >/dev/null; then systemctl disable --quiet mosquitto 2>/dev/null || true; fi
  done
  return 0
}

case "${1:-}" in
  packages) packages ;;
  peers) peers ;;
  *) say "usage: setup.sh packages|peers"; exit 64 ;;
esac
