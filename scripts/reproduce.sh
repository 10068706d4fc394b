#!/bin/bash
# `make reproduce`: builds the release in two folders under different circumstances and compares every file byte by byte.
# ARCHS as for `make deb`. What a build may not depend on: the folder, the umask, the time zone, the language, what was built
# before, the time. Uses the files that git knows as they are here; leaves its folders where it fails, to be compared.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
place=$(mktemp -d /tmp/reproduce-XXXXXX)
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct)
export SOURCE_DATE_EPOCH

copy() { # FOLDER
  mkdir -p "$1"
  git -C "$root" ls-files -z --cached --others --exclude-standard | tar -C "$root" --null --files-from=- --ignore-failed-read -cf - | tar -C "$1" -xf -
  # Links to the same files: a package that is found elsewhere is named by another path.
  cp -al "$root/node_modules" "$1/" 2>/dev/null || cp -a "$root/node_modules" "$1/"
}

one() { # FOLDER: runs in a subshell of its own
  copy "$1"
  cd "$1"
  npx --no-install tsx scripts/build.ts
  npx --no-install tsx scripts/dist.ts > /dev/null
  # shellcheck disable=SC2086
  npx --no-install tsx scripts/deb.ts ${ARCHS:-}
  cp dist/sbom.cdx.json release/tidegate.cdx.json
  (cd release && sha256sum ./* > SHA256SUMS)
}

(umask 022; export TZ=UTC LC_ALL=C; one "$place/a")
# One processor: compressors that cut their work by processors would show.
(umask 077; export TZ=Asia/Kathmandu LC_ALL=C.UTF-8; taskset -pc 0 $BASHPID > /dev/null 2>&1 || true; one "$place/another-folder/b")

cd "$place/a/release"
differ=0
for file in *; do
  if cmp -s "$file" "$place/another-folder/b/release/$file"; then echo "same    $file"
  else echo "DIFFERS $file"; differ=1; fi
done
if [ "$(ls | wc -l)" -ne "$(ls "$place/another-folder/b/release" | wc -l)" ]; then echo "other files in $place"; differ=1; fi
if [ "$differ" -eq 0 ]; then rm -rf "$place"; else echo "compare: $place"; fi
exit "$differ"
