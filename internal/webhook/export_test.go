package webhook

// WatchReply feeds a reply in the given pieces to what watches a connection, for
// the comparison with the standard library's parser.
func WatchReply(pieces ...[]byte) (status int, within bool) {
	var w replyWatch
	for _, p := range pieces {
		if !w.feed(p) {
			return w.status, false
		}
	}
	return w.status, true
}

// WiderMax is how many sets of open networks are kept.
const WiderMax = widerMax

// ForgetSet is how many events a step of forgetting looks at.
const ForgetSet = forgetSet
