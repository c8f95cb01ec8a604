package reference

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"tributary/internal/authority"
	"tributary/internal/official/xxwire"
)

// Keys of the book: "mail/" a message of a supplier's mailbox by its number,
// "mails/" how many there are, "mailing/" the documents that are decided when the
// mailbox is asked for next, "mailed/" the key of a document that was filed so.

// byMail reports whether a document wants its decision into the mailbox.
func (d *arrival) byMail() bool { return strings.HasSuffix(d.Number, xxwire.SuffixMailbox) }

// mailing is a document whose decision goes into the mailbox.
type mailing struct{ Number, Key string }

// mail lets a document be decided when its supplier asks the mailbox.
func (reg *registrar) mail(d *arrival) {
	reg.book.Put("mailed/"+reg.supplier+"\x00"+d.Number, d.Key)
	reg.keepMailings(append(reg.mailings(), mailing{d.Number, d.Key}))
}

func (reg *registrar) mailings() (list []mailing) {
	reg.book.Load("mailing/"+reg.supplier, &list)
	return list
}

func (reg *registrar) keepMailings(list []mailing) {
	reg.book.Keep("mailing/"+reg.supplier, list)
}

// drop puts a message into the mailbox, behind the others.
func (reg *registrar) drop(m xxwire.Callback) {
	n := reg.mails() + 1
	reg.book.Keep(fmt.Sprintf("mail/%s\x00%d", reg.supplier, n), m)
	reg.book.Put("mails/"+reg.supplier, strconv.Itoa(n))
}

func (reg *registrar) mails() int {
	text, _ := reg.book.Get("mails/" + reg.supplier)
	n, _ := strconv.Atoi(text) // absent: none
	return n
}

// decideMailings decides what waits for it and puts the decisions into the
// mailbox, each twice: that is what real ones do on a bad day.
func (reg *registrar) decideMailings() {
	list := reg.mailings()
	if len(list) == 0 {
		return
	}
	for _, m := range list {
		said, ok := reg.settled(m.Number, strings.HasSuffix(m.Number, xxwire.SuffixMailboxRefused))
		if !ok {
			continue
		}
		for range 2 {
			reg.drop(xxwire.Callback{ID: reg.supplier + "/" + m.Number + "/decision", Key: m.Key, Receipt: said})
		}
	}
	reg.keepMailings(nil)
}

// mailbox serves GET /v1/mailbox?after=N&limit=M.
func (a *double) mailbox(w http.ResponseWriter, r *http.Request) {
	from, ok := a.authenticate(w, r)
	if !ok {
		return
	}
	turn := a.desk.QueryTurn()
	if !turn.Begin(w, busy) {
		return
	}
	query := r.URL.Query()
	after, err := strconv.Atoi(query.Get("after"))
	limit, wrong := strconv.Atoi(query.Get("limit"))
	if err != nil || wrong != nil || after < 0 || limit < 1 {
		refusal{http.StatusBadRequest, xxwire.CodeCall, "after is 0 or where the last answer ended, limit at least 1"}.write(w)
		return
	}
	var lines []byte
	last, all := after, 0
	err = a.desk.Write(func(b *authority.Book) {
		reg := &registrar{book: b, supplier: from.supplier}
		reg.decideMailings()
		all = reg.mails()
		for ; last < all && last-after < min(limit, xxwire.MailboxMax); last++ {
			var m xxwire.Callback
			b.Load(fmt.Sprintf("mail/%s\x00%d", reg.supplier, last+1), &m)
			lines = append(xxwire.SignMessage(lines, from.key, m), '\n')
		}
	})
	if err != nil {
		http.Error(w, "the book cannot be read", http.StatusInternalServerError)
		return
	}
	w.Header().Set(xxwire.HeaderNext, strconv.Itoa(last))
	if last < all {
		w.Header().Set(xxwire.HeaderMore, "true")
	}
	if turn.End(w, r) {
		w.Header().Set("Content-Type", xxwire.TypeLines)
		_, _ = w.Write(lines) // a caller that left asks again
	}
}
