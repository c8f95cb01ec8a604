//go:build race

package es_test

// raced: the race detector makes everything several times slower, so that
// times say nothing.
const raced = true
