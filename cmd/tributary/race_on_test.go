//go:build race

package main

// raceDetector tells that the test binary costs several times what the program costs.
const raceDetector = true
