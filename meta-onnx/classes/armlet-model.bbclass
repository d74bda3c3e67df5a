# A payload of `inv model.pack` as a package. A recipe says five things, and inherits this:
#
#   SUMMARY = "..."
#   LICENSE = "..."
#   LIC_FILES_CHKSUM = "file://payload.json;md5=..."
#   ARMLET_PAYLOAD = "<model>.payload"
#
# The package's epoch is the payload's generation, and its version the payload's: set PE and PV so.

inherit allarch

SECTION ?= "models"
# Of the layer's runtimes, those that it fits; empty: all.
ARMLET_SKUS ?= ""
ARMLET_MODEL_DIR ?= "${nonarch_libdir}/armlet/models"

SRC_URI = "file://${ARMLET_PAYLOAD};unpack=0"
S = "${@d.getVar('UNPACKDIR') or d.getVar('WORKDIR')}/payload"

PACKAGES = "${PN}"
FILES:${PN} += "${ARMLET_MODEL_DIR}"

INHIBIT_DEFAULT_DEPS = "1"
do_configure[noexec] = "1"
do_compile[noexec] = "1"

python __anonymous() {
    skus, sku = (d.getVar("ARMLET_SKUS") or "").split(), d.getVar("ARMLET_SKU")
    if skus and sku and sku not in skus:
        raise bb.parse.SkipRecipe("the model does not fit the runtime %s, only: %s" % (sku, " ".join(skus)))
}

def armlet_unpack(d):
    """Takes the payload's files out of its archive; each is compared with payload.json."""
    import hashlib, json, os, shutil, tarfile
    folder = d.getVar("S")
    archive = os.path.join(d.getVar("UNPACKDIR") or d.getVar("WORKDIR"), d.getVar("ARMLET_PAYLOAD"))
    shutil.rmtree(folder, ignore_errors=True)
    with tarfile.open(archive, "r:") as tar:
        files = {}
        for member in tar:
            if not member.isreg() or member.name.startswith("/") or ".." in member.name.split("/"):
                bb.fatal("%s: %s must not be in a payload" % (archive, member.name))
            files[member.name] = tar.extractfile(member).read()
    if "payload.json" not in files:
        bb.fatal("%s is no payload: pack the model with inv model.pack" % archive)
    manifest = json.loads(files["payload.json"])
    for one in manifest["files"]:
        if hashlib.sha256(files.get(one["path"], b"")).hexdigest() != one["sha256"]:
            bb.fatal("%s: %s is damaged" % (archive, one["path"]))
    said = (str(manifest["generation"]), manifest["version"])
    if said != (d.getVar("PE"), d.getVar("PV")):
        bb.fatal("%s is generation %s, version %s: set PE and PV so" % ((archive,) + said))
    for name, data in sorted(files.items()):
        path = os.path.join(folder, name)
        bb.utils.mkdirhier(os.path.dirname(path))
        with open(path, "wb") as stream:
            stream.write(data)

python armlet_do_unpack() {
    armlet_unpack(d)
}
do_unpack[postfuncs] += "armlet_do_unpack"
do_unpack[vardeps] += "armlet_unpack"

def armlet_place(d):
    """<model>/<version>, as the service wants it."""
    import json, os
    with open(os.path.join(d.getVar("S"), "payload.json"), "rb") as stream:
        manifest = json.load(stream)
    return "%s/%s" % (manifest["model"], manifest["version"])

python do_install() {
    import os, shutil
    source = d.getVar("S")
    target = os.path.join(d.getVar("D") + d.getVar("ARMLET_MODEL_DIR"), armlet_place(d))
    for root, _, names in sorted(os.walk(source)):
        for name in sorted(names):
            path = os.path.join(target, os.path.relpath(os.path.join(root, name), source))
            bb.utils.mkdirhier(os.path.dirname(path))
            shutil.copyfile(os.path.join(root, name), path)
            os.chmod(path, 0o644)
}
do_install[vardeps] += "armlet_place"
