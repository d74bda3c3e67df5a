"""What runs on a device when the service is installed, updated or removed, as each package manager wants it.

While a root file system is put together on another machine, a script touches nothing of that machine.
"""

from __future__ import annotations

from collections.abc import Mapping

from armlet.nfpm import PackageFormat

_UNIT = "armlet-serve.service"
_MODELS = "/usr/lib/armlet/models"

# Debian policy 9.3 and deb-systemd-helper(1p): what the administrator enabled or disabled stays so.
_DEB_POSTINST = f"""\
#!/bin/sh
set -e
unit={_UNIT}

running() {{
    [ -z "${{DPKG_ROOT:-}}" ] && [ -d /run/systemd/system ]
}}

if [ "$1" = triggered ]; then
    # Models or the runtime changed.
    if running; then deb-systemd-invoke try-restart "$unit" >/dev/null || true; fi
    exit 0
fi

if [ -z "${{DPKG_ROOT:-}}" ] && [ "$1" = configure ] && command -v py3compile >/dev/null; then
    py3compile -p armlet-serve || true
fi

if command -v deb-systemd-helper >/dev/null; then
    deb-systemd-helper unmask "$unit" >/dev/null || true
    if deb-systemd-helper --quiet was-enabled "$unit"; then
        deb-systemd-helper enable "$unit" >/dev/null || true
    else
        deb-systemd-helper update-state "$unit" >/dev/null || true
    fi
fi
if running; then
    systemctl --system daemon-reload >/dev/null || true
    # With an older version there was one to take the place of.
    action=start
    [ -z "${{2:-}}" ] || action=restart
    deb-systemd-invoke "$action" "$unit" >/dev/null || true
fi
"""

_DEB_PRERM = f"""\
#!/bin/sh
set -e
if [ -z "${{DPKG_ROOT:-}}" ]; then
    if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
        deb-systemd-invoke stop {_UNIT} >/dev/null || true
    fi
    if command -v py3clean >/dev/null; then
        py3clean -p armlet-serve || true
    fi
fi
"""

_DEB_POSTRM = f"""\
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -z "${{DPKG_ROOT:-}}" ] && [ -d /run/systemd/system ]; then
    systemctl --system daemon-reload >/dev/null || true
fi
if [ "$1" = purge ]; then
    if command -v deb-systemd-helper >/dev/null; then
        deb-systemd-helper purge {_UNIT} >/dev/null || true
        deb-systemd-helper unmask {_UNIT} >/dev/null || true
    fi
    # What the service wrote: StateDirectory= of its unit. Keys that somebody put there stay.
    rm -rf "${{DPKG_ROOT:-}}/var/lib/private/armlet"
    if [ -L "${{DPKG_ROOT:-}}/var/lib/armlet" ]; then rm -f "${{DPKG_ROOT:-}}/var/lib/armlet"; fi
fi
"""

# Fedora's packaging guidelines: presets decide what is enabled; $1 counts the versions that stay.
_RPM_POST = f"""\
if [ -d /run/systemd/system ]; then systemctl daemon-reload || :; fi
if [ "$1" -eq 1 ] && command -v systemctl >/dev/null; then systemctl --no-reload preset {_UNIT} || :; fi
"""
_RPM_PREUN = f"""\
if [ "$1" -eq 0 ] && command -v systemctl >/dev/null; then
    if [ -d /run/systemd/system ]; then systemctl --no-reload disable --now {_UNIT} || :
    else systemctl --no-reload disable {_UNIT} || :; fi
fi
"""
_RPM_POSTUN = f"""\
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || :
    if [ "$1" -ge 1 ]; then systemctl try-restart {_UNIT} || :; fi
fi
"""

_INIT = "/etc/init.d/S90armlet-serve"
# OpenWrt: with PKG_UPGRADE its opkg says that what was enabled or disabled is to stay so.
_RC_COMMON = "/etc/rc.common"
_PROCD = "/etc/init.d/armlet-serve"
# OpenWrt's opkg sets IPKG_INSTROOT, Yocto's D, where a root file system is put together.
_OFFLINE = '[ -z "${IPKG_INSTROOT:-}${D:-}" ] || exit 0'
_IPK_POSTINST = f"""\
#!/bin/sh
{_OFFLINE}
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl enable {_UNIT}
    systemctl restart {_UNIT}
elif [ -f {_RC_COMMON} ]; then
    [ "${{PKG_UPGRADE:-0}}" = 1 ] || {_PROCD} enable
    if {_PROCD} enabled; then {_PROCD} restart; fi
else
    # Buildroot's kind of init finds the script by its name, sysvinit wants links.
    if command -v update-rc.d >/dev/null; then update-rc.d S90armlet-serve defaults 90; fi
    {_INIT} restart
fi
exit 0
"""
_IPK_PRERM = f"""\
#!/bin/sh
{_OFFLINE}
if [ -d /run/systemd/system ]; then
    systemctl disable --now {_UNIT}
elif [ -f {_RC_COMMON} ]; then
    [ "${{PKG_UPGRADE:-0}}" = 1 ] || {_PROCD} disable
    {_PROCD} stop
else
    {_INIT} stop
fi
exit 0
"""
_IPK_POSTRM = f"""\
#!/bin/sh
{_OFFLINE}
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
elif command -v update-rc.d >/dev/null; then
    update-rc.d S90armlet-serve remove
fi
exit 0
"""

_APK_STARTED = f"""\
#!/bin/sh
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
systemctl preset {_UNIT}
systemctl restart {_UNIT}
exit 0
"""
_APK_STOPPED = f"""\
#!/bin/sh
[ -d /run/systemd/system ] || exit 0
systemctl disable --now {_UNIT}
exit 0
"""

SCRIPTS: Mapping[PackageFormat, Mapping[str, str]] = {
    "deb": {"postinstall": _DEB_POSTINST, "preremove": _DEB_PRERM, "postremove": _DEB_POSTRM},
    "ipk": {"postinstall": _IPK_POSTINST, "preremove": _IPK_PRERM, "postremove": _IPK_POSTRM},
    "rpm": {"postinstall": _RPM_POST, "preremove": _RPM_PREUN, "postremove": _RPM_POSTUN},
    "apk": {"postinstall": _APK_STARTED, "postupgrade": _APK_STARTED, "preremove": _APK_STOPPED},
}
"""nfpm's name of a script -> its text."""

TRIGGERS: Mapping[PackageFormat, Mapping[str, tuple[str, ...]]] = {
    "deb": {"interest_noawait": (_MODELS, "/usr/share/armlet")},
}
"""What the service starts again for, when another package changes it."""
