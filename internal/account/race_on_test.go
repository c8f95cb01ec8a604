//go:build race

package account_test

// raceDetector tells that memory accesses cost several times what they cost in production.
const raceDetector = true
