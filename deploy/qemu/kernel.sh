#!/usr/bin/env bash
# kernel.sh 6.1|6.12: prints the folder that holds Debian's cloud kernel of that series as `vmlinuz`, and its version as `version`.
#
# Fetched at the first call, by the name that the package lists give now; later calls need no network. Removing the folder fetches anew.
set -euo pipefail
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../packages.sh"

case ${1-} in
  6.1) meta=linux-image-cloud-amd64 pattern='^linux-image-6\.1\.[0-9]+-[0-9]+-cloud-amd64$' ;;
  6.12) meta=linux-image-6.12-cloud-amd64 pattern='^linux-image-6\.12\.[0-9]+\+deb12-cloud-amd64$' ;;
  *) say "a kernel is 6.1 or 6.12, not '${1-}'"; exit 2 ;;
esac
[[ $(dpkg --print-architecture) == amd64 ]] || { say "guests are for amd64 only"; exit 1; }

cache=$(guest_cache)
folder=$cache/$1
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
[[ -e $folder/vmlinuz ]] && { echo "$folder"; exit 0; }

# newest: the package that the series' meta-package depends on, or the highest version in the lists.
newest() {
  local name
  name=$(apt-cache depends "$meta" 2>/dev/null | awk '$1 == "Depends:" { print $2 }' | grep -E -m 1 "$pattern") ||
    name=$(apt-cache pkgnames linux-image-6. | grep -E "$pattern" | sort -V | tail -n 1)
  [[ $name ]] && echo "$name"
}

work=$(mktemp -d "$cache/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
fetch() { package=$(newest) && (cd "$work" && apt-get download "$package") >>"$work/log" 2>&1; }
if ! fetch; then
  as_root=()
  ((EUID == 0)) || as_root=(sudo -n)
  "${as_root[@]}" apt-get update >>"$work/log" 2>&1 || true
  fetch || { tail -n 5 "$work/log" >&2; say "there is no package of kernel $1 to be had"; exit 1; }
fi
mkdir "$work/kernel"
dpkg-deb --fsys-tarfile "$work"/*.deb | tar -x -C "$work/kernel" --wildcards --strip-components=2 './boot/vmlinuz-*'
mv "$work"/kernel/vmlinuz-* "$work/kernel/vmlinuz"
echo "${package#linux-image-}" >"$work/kernel/version"
rm -rf "$folder"
mv "$work/kernel" "$folder"
echo "$folder"
