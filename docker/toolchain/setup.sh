#!/bin/sh
# usage: setup.sh SUITE PACKAGE... (in the image, as root)
# Brings any Debian root file system of SUITE to one and the same state: SUITE's own versions of the packages, what
# they need, and nothing else. MIRROR, where set, replaces the sources the base image came with.
set -eu
suite=$1
shift
here=$(dirname "$0")
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

rm -f /etc/apt/apt.conf.d/* /etc/dpkg/dpkg.cfg.d/*
if [ -n "${MIRROR:-}" ]; then
    rm -rf /etc/apt/sources.list.d/*
    echo "deb $MIRROR $suite main" >/etc/apt/sources.list
fi
# Over 1000: a base with newer updates goes back to the suite's own versions.
cat >/etc/apt/preferences.d/armlet <<END
Package: *
Pin: release n=$suite
Pin-Priority: 1001
END
cat >/etc/apt/apt.conf.d/armlet <<END
Acquire::Retries "3";
Acquire::Languages "none";
APT::Install-Recommends "false";
APT::AutoRemove::RecommendsImportant "false";
APT::AutoRemove::SuggestsImportant "false";
DPkg::Use-Pty "false";
END
if [ -s "$here/host-ca.pem" ]; then
    # apt drops to a user of its own before it reads this.
    chmod 755 "$here" && chmod 644 "$here/host-ca.pem"
    echo "Acquire::https::CaInfo \"$here/host-ca.pem\";" >>/etc/apt/apt.conf.d/armlet
fi
cat >/etc/dpkg/dpkg.cfg.d/armlet <<END
path-exclude=/usr/share/doc/*
path-include=/usr/share/doc/*/copyright
path-exclude=/usr/share/info/*
path-exclude=/usr/share/locale/*
path-exclude=/usr/share/man/*
force-unsafe-io
END
# No service is started by a package that brings one.
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d

apt-get --quiet update
apt-get --quiet --yes --allow-downgrades dist-upgrade
# What a minimal system has, by the archive's own word; bases made by different tools have a little more or less.
required=$(apt-cache dumpavail | awk '/^Package: /{name=$2} /^Priority: required/{print name}' | sort -u)
# Either of two packages tells that /usr is merged; the one that is no program needs nothing else.
if apt-cache show usr-is-merged >/dev/null 2>&1; then
    required="$required usr-is-merged"
fi
# shellcheck disable=SC2086  # a list of names
set -- apt $required "$@"
apt-get --quiet --yes install "$@"
apt-mark showmanual | xargs apt-mark auto >/dev/null
apt-mark manual "$@" >/dev/null
apt-get --quiet --yes --purge autoremove

rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/* /etc/apt/preferences.d/armlet /usr/sbin/policy-rc.d
rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/lib/dpkg/*-old /var/log/* "$here"
mkdir -p /var/lib/apt/lists/partial /var/cache/apt/archives/partial /var/log/apt
