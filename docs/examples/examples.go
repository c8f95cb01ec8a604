// Package examples holds the request bodies that the README, the API reference
// and the tests share.
package examples

import "embed"

// Files are the bodies, one JSON file each.
//
//go:embed *.json
var Files embed.FS
