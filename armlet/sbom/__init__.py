"""What an artefact is made of, told as CycloneDX, as SPDX and as a NOTICE."""
