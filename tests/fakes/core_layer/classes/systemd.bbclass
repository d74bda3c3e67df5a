# As OpenEmbedded has it, as far as a parser cares.
