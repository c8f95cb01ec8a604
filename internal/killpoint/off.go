//go:build !killpoints

package killpoint

// Armed says that this program can be killed at a point.
const Armed = false

// Reach does nothing in this build.
func Reach(Point) {}
