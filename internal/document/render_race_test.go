//go:build race

package document_test

// Under the race detector sync.Pool forgets at random, so that what is
// allocated says nothing about what is needed.
const raceDetector = true
