# Tasks that do what their names say, and what skips a recipe for another host.
python do_unpack() {
    bb.utils.mkdirhier(d.getVar("WORKDIR"))
    bb.fetch2.Fetch((d.getVar("SRC_URI") or "").split(), d).unpack(d.getVar("WORKDIR"))
}
addtask unpack
do_install() {
    :
}
addtask install after do_unpack
python __anonymous() {
    import re
    wanted = d.getVar("COMPATIBLE_HOST")
    if wanted and not re.match(wanted, d.getVar("HOST_SYS")):
        raise bb.parse.SkipRecipe("incompatible with host %s (not in COMPATIBLE_HOST)" % d.getVar("HOST_SYS"))
}
