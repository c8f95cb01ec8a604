//go:build race

package lookup_test

// manyFactor divides the sizes of the heaviest tests: the race detector makes
// each question about ten times as dear and learns nothing from the last thousands.
const manyFactor = 10
