//go:build !race

package simulation

const slowdown = 1
