package fr

import "tributary/internal/country"

// What the tests beside this package look at.

// Said is what a message of a life cycle says: its code, whose it is, and its entry.
func Said(text []byte) (code, handle string, news []country.News, err error) {
	s, err := readStatus(text)
	if err != nil || s == nil {
		return "", "", nil, err
	}
	return s.code, s.handle, s.news(), nil
}
