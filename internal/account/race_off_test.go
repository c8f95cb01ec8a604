//go:build !race

package account_test

const raceDetector = false
