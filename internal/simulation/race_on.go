//go:build race

package simulation

// slowdown: with the race detector SQLite's engine, which is Go here, costs
// about fifteen times as much, so that only every twentieth seed is run.
const slowdown = 20
