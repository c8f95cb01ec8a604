package aeat

import "tributary/internal/xmltree"

// HuellaOf computes the huella of a record.
func HuellaOf(record *xmltree.Element, cancels bool) string { return huellaOf(record, cancels) }
