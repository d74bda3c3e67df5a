SUMMARY = "A small image that serves models"
DESCRIPTION = "core-image-minimal's packages and packagegroup-armlet: to try, and to take from."
HOMEPAGE = "https://onnxruntime.ai"
LICENSE = "MIT"

inherit core-image

IMAGE_INSTALL = "packagegroup-core-boot packagegroup-armlet ${CORE_IMAGE_EXTRA_INSTALL}"
