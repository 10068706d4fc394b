#!/usr/bin/env bash
# The first ten minutes of somebody new, in a fresh clone: README's `make start` up to GW-READY, then every session of getting-started.md
# with what it prints compared. Run by `make newcomer`. Needs git and the npm registry; the sessions run in a network of their own.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d /tmp/newcomer.XXXXXX)
gateway=0
cleanup() {
  if [ "$gateway" != 0 ]; then kill -- "-$gateway" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap cleanup EXIT
begin=$(date +%s)
git clone -q . "$work/tidegate"
cd "$work/tidegate"
# Ports of this machine may be taken; where the page is a newcomer's, the network is too.
sed 's/127.0.0.1:[0-9]*"/127.0.0.1:0"/g; s/port = 8081/port = 0/; s#/tmp/tidegate-#'"$work"'/#' etc/tidegate.conf >"$work/my.conf"
set -m
make start CONF="$work/my.conf" >"$work/log" 2>&1 &
gateway=$!
set +m
for _ in $(seq 3000); do
  grep -q GW-READY "$work/log" && break
  kill -0 "$gateway" 2>/dev/null || break
  sleep 0.1
done
grep -q GW-READY "$work/log" || { tail -20 "$work/log"; echo "newcomer: make start did not come up"; exit 1; }
echo "newcomer: make start is up after $(($(date +%s) - begin)) s"
mkdir "$work/tour"
unshare -rn sh -c 'ip link set lo up && exec npx tsx test/docs/tour.ts docs/getting-started.md "$0"' "$work/tour"
echo "newcomer: done after $(($(date +%s) - begin)) s"
