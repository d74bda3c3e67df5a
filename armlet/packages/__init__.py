"""What a built runtime becomes for distributions: packages from its manifest and its ELF files."""
