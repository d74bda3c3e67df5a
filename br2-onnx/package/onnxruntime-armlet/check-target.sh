#!/bin/sh
# Whether the target's libraries have what a prebuilt one asks of them.
#
# usage: check-target.sh <compiler> <readelf> <SKU> <library>:<version of symbols>...
# Without a version, the library has to be there.

set -eu

compiler=$1
readelf=$2
sku=$3
shift 3

# Of what a library defines itself, not of what it asks of others.
defined() {
    LC_ALL=C "$readelf" -V -W "$1" | awk -v wanted="$2" '
        /^Version / { ours = /^Version definition/ }
        ours { for (at = 1; at < NF; at++) if ($at == "Name:" && $(at + 1) == wanted) found = 1 }
        END { exit !found }'
}

lacks=
for ask; do
    library=${ask%%:*}
    version=${ask#*:}
    file=$("$compiler" -print-file-name="$library")
    if [ ! -f "$file" ]; then
        lacks="$lacks $library"
    elif [ -n "$version" ] && ! defined "$file" "$version"; then
        lacks="$lacks $library($version)"
    fi
done

if [ -n "$lacks" ]; then
    echo "onnxruntime-armlet: the runtime $sku does not start on this target, which lacks:$lacks" >&2
    echo "hint: take a toolchain with a newer C library, or a SKU that is built for an older one" >&2
    exit 1
fi
