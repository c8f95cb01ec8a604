package lease

// memory is what the claims of one pump remember from one to the next. Each part
// saves looking; losing all of it costs time, never a row. A part that is nil
// remembers nothing.
type memory struct {
	turns *turns     // whose turn it was, of a queue with groups
	low   *lowWater  // the instant below which nothing is due any more, and the days with open rows
	scan  *keyScan   // when it may look behind keys without room again
	ready *readyKeys // keys that were due when no slot was free, of a pump with classes
}
