package ro

import (
	"context"
	"time"

	"tributary/internal/country"
)

// What the tests beside this package look at.

func County(text string) string { return countyOf(text) }

func Sector(parts ...string) string { return sectorOf(parts...) }

func Renew(ctx context.Context, at country.Endpoint, c country.Credentials) (map[string]string, error) {
	return renew(ctx, at, c)
}

func Until(kept map[string]string, now time.Time) (access, grant time.Time) { return until(kept, now) }

// Unhurried is a channel that reads lists as often as it is asked.
func Unhurried(ch country.Channel) country.Channel {
	ch.(*channel).lists.pause = 0
	return ch
}

func Free(day time.Time) bool { return holidays.Free(day) }
