# A runtime that was built elsewhere: whether the image that is being built can run it.
#
# ARMLET_ARCH   aarch64 or armhf
# ARMLET_ISA    what it was compiled for, as -march has it
# ARMLET_GLIBC  the oldest glibc that has every symbol it asks for

COMPATIBLE_HOST:libc-musl = "null"
COMPATIBLE_HOST:libc-newlib = "null"

# Tune feature -> the version of the architecture that its cores have. A tune that names none of them is not judged.
ARMLET_LEVELS = "cortexa35=8.0 cortexa53=8.0 cortexa57=8.0 cortexa72=8.0 cortexa73=8.0 \
    cortexa55=8.2 cortexa65=8.2 cortexa75=8.2 cortexa76=8.2 cortexa77=8.2 cortexa78=8.2 neoversen1=8.2 \
    armv8a=8.0 armv8-1a=8.1 armv8-2a=8.2 armv8-3a=8.3 armv8-4a=8.4 armv8-5a=8.5 armv8-6a=8.6 armv9a=9.0"

def armlet_version(text):
    import re
    return tuple(int(part) for part in re.findall(r"[0-9]+", text)[:2])

def armlet_tune_problem(d):
    """Why the machine's processor cannot run it; empty: it can."""
    import re
    features = set((d.getVar("TUNE_FEATURES") or "").split())
    arch, isa = d.getVar("ARMLET_ARCH"), d.getVar("ARMLET_ISA")
    told = "TUNE_FEATURES of %s are: %s" % (d.getVar("MACHINE"), " ".join(sorted(features)))
    if "bigendian" in features:
        return "it is little-endian, the machine is not. " + told
    if arch == "aarch64":
        if "aarch64" not in features:
            return "it is for 64-bit ARM. " + told
    else:
        if "callconvention-hard" not in features:
            return "it passes floats in registers (hard-float), the machine's tune does not: choose one with 'hf' in its name. " + told
        if not features & {"neon", "simd", "crypto"} and not any(one.startswith("armv8") for one in features):
            return "it needs NEON, the machine's tune has none: choose one with 'neon' in its name. " + told
    level = re.match(r"armv([0-9.]+)", isa)
    known = dict(pair.split("=") for pair in d.getVar("ARMLET_LEVELS").split())
    offered = [armlet_version(known[one]) for one in features if one in known]
    if level and offered and max(offered) < (armlet_version(level.group(1)) + (0,))[:2]:
        return "it was compiled for %s, the machine's cores are older. %s" % (isa, told)
    return ""

def armlet_libc_problem(d, libc):
    """Why the image's C library is not enough; empty: it is. `libc`: the path of libc.so.6."""
    import re
    wanted = d.getVar("ARMLET_GLIBC")
    try:
        with open(libc, "rb") as stream:
            found = re.findall(rb"GLIBC_([0-9]+\.[0-9]+)\0", stream.read())
    except OSError as error:
        return "the image's C library cannot be read: %s" % error
    newest = max((armlet_version(one.decode()) for one in found), default=(0, 0))
    if newest < armlet_version(wanted):
        return "it needs glibc %s, the image has %d.%d: build the SKU with an older toolchain" % ((wanted,) + newest)
    return ""

python do_armlet_fits() {
    problem = armlet_tune_problem(d) or armlet_libc_problem(
        d, d.expand("${RECIPE_SYSROOT}${base_libdir}/libc.so.6")
    )
    if problem:
        bb.fatal("%s cannot be used for %s: %s" % (d.getVar("PN"), d.getVar("MACHINE"), problem))
}
do_armlet_fits[doc] = "Refuses a prebuilt runtime that the image cannot run"
do_armlet_fits[vardeps] += "TUNE_FEATURES"
addtask armlet_fits after do_prepare_recipe_sysroot before do_install

do_configure[noexec] = "1"
do_compile[noexec] = "1"

# It is stripped, and its debug data lies beside it.
INHIBIT_PACKAGE_STRIP = "1"
INHIBIT_PACKAGE_DEBUG_SPLIT = "1"
INHIBIT_SYSROOT_STRIP = "1"
