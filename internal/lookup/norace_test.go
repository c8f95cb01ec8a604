//go:build !race

package lookup_test

const manyFactor = 1
