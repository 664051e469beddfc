#!/bin/sh
# Runs lmkbc as the owner of the directory that is mounted at /work, so that what it writes there is theirs.
# A directory that the daemon just made is root's: it is handed to user 1000. In a rootless container root is the caller.
set -eu
work="${LMKBC_WORK:-/work}"
export XDG_CACHE_HOME="${XDG_CACHE_HOME:-$work/.cache}"
export XDG_CONFIG_HOME="${XDG_CONFIG_HOME:-$XDG_CACHE_HOME}"  # what libraries keep of theirs: the caller's home is no place
rootless() {
    read -r inside outside _ < /proc/self/uid_map
    [ "$inside" = 0 ] && [ "$outside" != 0 ]
}
if [ "$(id -u)" != 0 ] || rootless; then
    exec lmkbc "$@"
fi
if [ "$(stat -c %u "$work")" = 0 ]; then
    chown 1000:1000 "$work"
fi
exec setpriv --reuid "$(stat -c %u "$work")" --regid "$(stat -c %g "$work")" --clear-groups lmkbc "$@"
