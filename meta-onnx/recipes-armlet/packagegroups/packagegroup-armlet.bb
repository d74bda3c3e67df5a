SUMMARY = "Served models"
DESCRIPTION = "The runtime that conf/armlet-skus.inc has for the machine, its models, and the service."
HOMEPAGE = "https://onnxruntime.ai"

# Which runtime it is depends on the machine.
PACKAGE_ARCH = "${MACHINE_ARCH}"

inherit packagegroup

python __anonymous() {
    sku, known = d.getVar("ARMLET_SKU"), sorted(d.getVarFlags("ARMLET_RUNTIMES") or {})
    if sku not in known:
        raise bb.parse.SkipRecipe(
            'ARMLET_SKU is "%s" for MACHINE %s, this layer has: %s. Set ARMLET_SKU:%s, or emit the layer with that SKU'
            % (sku, d.getVar("MACHINE"), " ".join(known), d.getVar("MACHINE"))
        )
}

RDEPENDS:${PN} = "\
    ${ARMLET_KEYS} \
    ${ARMLET_PAYLOADS} \
    ${ARMLET_RUNTIME} \
    armlet-serve \
"
