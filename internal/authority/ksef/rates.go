package ksef

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"tributary/internal/official/ksefwire"
)

// generosity is how many times as many calls as KSeF the double takes, unless
// its habits say otherwise: tests and demonstrations are impatient.
const generosity = 1000

// generous are KSeF's limits many times over.
func generous() ksefwire.Rates {
	r := ksefwire.ProductionRates()
	for _, one := range []*ksefwire.Rate{&r.OnlineSession, &r.BatchSession, &r.InvoiceSend, &r.InvoiceStatus,
		&r.SessionList, &r.SessionInvoiceList,
		&r.SessionMisc, &r.InvoiceMetadata, &r.InvoiceExport, &r.InvoiceExportStatus, &r.InvoiceDownload, &r.Other} {
		*one = one.Times(generosity)
	}
	return r
}

// group names the calls that share a limit (ksef-docs, limity-api.md).
type group string

const (
	onlineSession      group = "onlineSession"
	batchSession       group = "batchSession"
	invoiceSend        group = "invoiceSend"
	invoiceStatus      group = "invoiceStatus"
	sessionList        group = "sessionList"
	sessionInvoiceList group = "sessionInvoiceList"
	sessionMisc        group = "sessionMisc"
	invoiceMetadata    group = "invoiceMetadata"
	invoiceDownload    group = "invoiceDownload"

	invoiceExport       group = "invoiceExport"
	invoiceExportStatus group = "invoiceExportStatus"

	other group = "other"
)

func (g group) rate(r ksefwire.Rates) ksefwire.Rate {
	switch g {
	case onlineSession:
		return r.OnlineSession
	case batchSession:
		return r.BatchSession
	case invoiceSend:
		return r.InvoiceSend
	case invoiceStatus:
		return r.InvoiceStatus
	case sessionList:
		return r.SessionList
	case sessionInvoiceList:
		return r.SessionInvoiceList
	case sessionMisc:
		return r.SessionMisc
	case invoiceMetadata:
		return r.InvoiceMetadata
	case invoiceDownload:
		return r.InvoiceDownload
	case invoiceExport:
		return r.InvoiceExport
	case invoiceExportStatus:
		return r.InvoiceExportStatus
	}
	return r.Other
}

// calls are those of one taxpayer and group within the last hour, and until
// when none is taken.
type calls struct {
	at      []time.Time
	blocked time.Time
}

// limited lets a call pass while its taxpayer is inside the limits of its group.
// KSeF counts in windows that slide, all of them at once, by taxpayer and address.
func (l *limits) limited(by group, serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, ok := l.access.claimsOf(r, "access")
		if !ok {
			serve(w, r) // it will be refused for that
			return
		}
		wait, text := l.count(c.NIP+"/"+string(by), by.rate(l.rates))
		if wait <= 0 {
			serve(w, r)
			return
		}
		seconds := int((wait + time.Second - 1) / time.Second)
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
		refuse(w, r, http.StatusTooManyRequests,
			ksefwire.ProblemError{Description: fmt.Sprintf("Przekroczono limit %s. Spróbuj ponownie po %d sekundach.", text, seconds)})
	}
}

// count counts a call, or says how long none is taken.
func (l *limits) count(key string, rate ksefwire.Rate) (wait time.Duration, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	made := l.made[key]
	if made == nil {
		made = &calls{}
		l.made[key] = made
	}
	if now.Before(made.blocked) {
		return made.blocked.Sub(now), "żądań"
	}
	for len(made.at) > 0 && now.Sub(made.at[0]) >= time.Hour {
		made.at = made.at[1:]
	}
	for _, limit := range []struct {
		calls int
		span  time.Duration
		text  string
	}{{rate.Hour, time.Hour, "godzinę"}, {rate.Minute, time.Minute, "minutę"}, {rate.Second, time.Second, "sekundę"}} {
		if len(made.at) < limit.calls {
			continue
		}
		if free := made.at[len(made.at)-limit.calls].Add(limit.span); now.Before(free) {
			made.blocked = free
			return free.Sub(now), fmt.Sprintf("%d żądań na %s", limit.calls, limit.text)
		}
	}
	made.at = append(made.at, now)
	return 0, ""
}
