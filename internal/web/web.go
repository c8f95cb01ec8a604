// Package web holds what all our pages share, the operator's and the
// documentation's: the colours of light and dark, and highlighted code.
//
// It owns no page. Law of [Highlight]: whatever text comes in, what goes out is
// that text, escaped, with spans around parts of it and nothing else.
package web

import _ "embed"

// Palette is the beginning of every stylesheet of ours.
//
//go:embed palette.css
var Palette []byte

// Icon is the sign of the product.
//
//go:embed icon.svg
var Icon []byte
