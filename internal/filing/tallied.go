package filing

// Tallied is what a commit did to transactions of one client and country; see
// [Config].Count.
type Tallied struct {
	Country, ClientID           string
	Accepted, Succeeded, Failed int64
}

// together adds to the last entry where it is of the same client and country,
// so that a set of one of them costs one entry.
func together(list []Tallied, t Tallied) []Tallied {
	if n := len(list); n > 0 && list[n-1].Country == t.Country && list[n-1].ClientID == t.ClientID {
		list[n-1].Accepted += t.Accepted
		list[n-1].Succeeded += t.Succeeded
		list[n-1].Failed += t.Failed
		return list
	}
	return append(list, t)
}

// tallied counts the new operations of an intake.
func (in *intakeSet) tallied() (list []Tallied) {
	for i, sub := range in.set {
		if a := in.answers[i]; !a.refused && a.operationID == sub.operationID {
			list = together(list, Tallied{Country: sub.examined.Pack.Code, ClientID: sub.caller.Scope, Accepted: 1})
		}
	}
	return list
}

// talliedEnds counts operations that ended, those that waited behind them
// included, those of our own not: nobody submitted them.
func talliedEnds(endings []ending, joined []*operation, own map[string]bool) (list []Tallied) {
	for _, e := range endings {
		if own[e.op.id] {
			continue
		}
		t := Tallied{Country: e.op.code, ClientID: e.op.scope, Failed: 1}
		if e.status == Success {
			t.Failed, t.Succeeded = 0, 1
		}
		list = together(list, t)
	}
	for _, o := range joined {
		list = together(list, Tallied{Country: o.code, ClientID: o.scope, Succeeded: 1})
	}
	return list
}
