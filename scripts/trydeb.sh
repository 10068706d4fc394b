#!/usr/bin/env bash
# Tries a package in a fresh Debian 12: scripts/trydeb.sh release/tidegate_0.1.0_amd64.deb [reports to standard output]
# Installs it with dpkg, starts the gateway as its user, sends a message over MQTT and one each way across the ipc bridges, kills and
# restarts it, fetches the console, reads the manual, upgrades, purges, and looks for what is left. Foreign architectures run under
# qemu-user-static. Needs root and debootstrap; everything happens in a folder of its own and in the network of this machine's loopback.
set -eu
deb=$(realpath "$1")
arch=$(dpkg-deb -f "$deb" Architecture)
base=${TRYDEB_DIR:-/var/tmp/tidegate-trydeb}
seed="$base/seed-$arch"
root="$base/root-$arch-$$"
say() { echo "trydeb: $*"; }
failed() { say "FAILED: $*"; exit 1; }

if command -v lintian >/dev/null; then
  lintian --allow-root --fail-on error,warning "$deb" || failed "lintian"
fi
mkdir -p "$base"
if [ ! -e "$seed/done" ]; then
  rm -rf "$seed"
  say "debootstrap bookworm $arch"
  debootstrap --variant=minbase --arch="$arch" bookworm "$seed" >"$base/debootstrap-$arch.log" 2>&1 ||
    failed "debootstrap, see $base/debootstrap-$arch.log"
  if dpkg-deb -f "$deb" Depends | grep -q libatomic1; then
    cp /etc/resolv.conf "$seed/etc/resolv.conf" 2>/dev/null || true
    cp /etc/apt/apt.conf.d/* "$seed/etc/apt/apt.conf.d/" 2>/dev/null || true
    chroot "$seed" apt-get -q update >>"$base/debootstrap-$arch.log" 2>&1 || true
    chroot "$seed" apt-get -q install -y libatomic1 >>"$base/debootstrap-$arch.log" 2>&1 || failed "libatomic1, see $base/debootstrap-$arch.log"
  fi
  touch "$seed/done"
fi
cp -a "$seed" "$root"
mount --bind /proc "$root/proc"
mount -t tmpfs none "$root/dev/shm" 2>/dev/null || true
gateway=0
cleanup() {
  if [ "$gateway" != 0 ]; then kill -9 "$gateway" 2>/dev/null || true; fi
  umount "$root/dev/shm" 2>/dev/null || true
  umount "$root/proc" || true
  rm -rf --one-file-system "$root"
}
trap cleanup EXIT
in_root() { chroot "$root" /usr/bin/env -i NODE_NO_WARNINGS=1 PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"; }
as_user() { chroot --userspec=tidegate:tidegate "$root" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/var/lib/tidegate "$@"; }

# What an installed Debian has and debootstrap leaves out.
[ -s "$root/etc/hosts" ] || echo "127.0.0.1 localhost" >"$root/etc/hosts"
(cd "$root" && find . -xdev -path ./proc -prune -o -path ./dev -prune -o -print | sort) >"$base/before-$$"
cp "$deb" "$root/tmp/t.deb"
in_root dpkg -i /tmp/t.deb >"$base/dpkg-$arch.log" 2>&1 || { cat "$base/dpkg-$arch.log"; failed "dpkg -i"; }
say "installed: $(in_root tidegate --version), $(in_root du -sm /usr/lib/tidegate | cut -f1) MB"

port=$((20000 + RANDOM % 10000))
# /etc/tidegate is read by the group only; ports are chosen so that nothing of this machine is in the way.
start() {
  install -d -o "$(in_root id -u tidegate)" -g "$(in_root id -g tidegate)" "$root/run/tidegate"
  as_user tidegate start -c /etc/tidegate/tidegate.conf --set listeners.tcp.bind=127.0.0.1:$port --set http_server.port=$((port + 1)) \
    >"$root/tmp/log" 2>&1 &
  gateway=$!
  for _ in $(seq 600); do grep -q GW-READY "$root/tmp/log" && break; kill -0 $gateway 2>/dev/null || break; sleep 0.1; done
  grep -q GW-READY "$root/tmp/log" || { cat "$root/tmp/log"; failed "no GW-READY"; }
}
gateway_pid() { pgrep -f "dist/main.js start -c /etc/tidegate/tidegate.conf --set listeners.tcp.bind=127.0.0.1:$port" | head -1; }
stop() { kill "-$1" "$(gateway_pid)"; wait $gateway 2>/dev/null || true; gateway=0; }
expect() { [ "$2" = "$3" ] && say "ok: $1" || failed "$1: expected '$3', got '$2'"; }

begin=$(date +%s%N); start
say "ready after $((($(date +%s%N) - begin) / 1000000)) ms, RSS $(awk '/VmRSS/{print int($2/1024)}' /proc/"$(gateway_pid)"/status) MB"
expect "runs as its user" "$(stat -c %u /proc/"$(gateway_pid)")" "$(in_root id -u tidegate)"
as_user tidegate pub -p $port -q 1 -r -t keep/a -m stored
expect "a message over MQTT" "$(timeout 60 chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin tidegate sub -p $port -t keep/a -C 1)" stored
as_user sh -c 'timeout 60 tidegate nng sub --dial ipc:///run/tidegate/out.ipc --topic sensors --raw --count 1 >/tmp/got 2>&1 & 
  sleep '"${TRYDEB_SETTLE:-3}"'; tidegate pub -p '$port' -q 1 -t sensor/a -m 21.5; wait'
expect "a message to NNG over ipc" "$(tr -d '\n' <"$root/tmp/got")" "sensors:21.5"
as_user sh -c 'timeout 60 tidegate sub -p '$port' -t "result/#" -v -C 1 >/tmp/got2 2>&1 &
  sleep '"${TRYDEB_SETTLE:-3}"'; tidegate nng pub --dial ipc:///run/tidegate/in.ipc --topic result/average --delimiter : --data 21.4 --count 1; wait'
expect "a message from NNG over ipc" "$(cat "$root/tmp/got2")" "result/average 21.4"
expect "the console" "$(curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:$((port + 1))/)" 200
stop KILL; start
expect "stored over a kill" "$(timeout 60 chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin tidegate sub -p $port -t keep/a -C 1)" stored
stop TERM
[ -s "$root/usr/share/man/man1/tidegate.1.gz" ] && [ -s "$root/usr/share/bash-completion/completions/tidegate" ] || failed "manual or completion is missing"
in_root dpkg -i /tmp/t.deb >/dev/null 2>&1 || failed "the same version once more"
start; expect "data after an upgrade" "$(timeout 60 chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin tidegate sub -p $port -t keep/a -C 1)" stored; stop TERM
in_root dpkg --purge "$(dpkg-deb -f "$deb" Package)" >>"$base/dpkg-$arch.log" 2>&1 || failed "purge"
rm -f "$root"/tmp/*
(cd "$root" && find . -xdev -path ./proc -prune -o -path ./dev -prune -o -print | sort) >"$base/after-$$"
left=$(comm -13 "$base/before-$$" "$base/after-$$" | grep -vE '^\./(var/lib/dpkg|var/log/(dpkg|alternatives)|var/cache|etc/(passwd|group|shadow|gshadow|subuid|subgid)-|etc/\.pwd\.lock|tmp)' || true)
rm -f "$base/before-$$" "$base/after-$$"
expect "nothing left after the purge" "$left" ""
in_root getent passwd tidegate >/dev/null && failed "the user is still there"
say "$arch: all passed"
