"""Pure text emitters: the same facts give the same text."""
