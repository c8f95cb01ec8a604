package reference

import (
	"io"
	"net/http"
	"slices"
	"time"

	"tributary/internal/authority"
	"tributary/internal/official/xxwire"
	"tributary/internal/strictjson"
)

const (
	noticeBytesMax = 1 << 14
	noticesMax     = 50 // about one document; all of them stand in one answer
)

// hear serves POST /v1/notices: somebody says something about a document that
// is registered. Like enrolment it stands for a counter of its own; whoever
// reaches it is believed. The same key again changes nothing.
func (a *double) hear(w http.ResponseWriter, r *http.Request) {
	var in xxwire.Said
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, noticeBytesMax))
	if err != nil || strictjson.Unmarshal(text, noticeBytesMax, "the notice", &in) != nil || in.Notice.Key == "" ||
		in.Notice.Code == "" {
		refusal{http.StatusBadRequest, xxwire.CodeCall, "a notice has supplier, number and notice with key and code"}.write(w)
		return
	}
	if in.Notice.At == "" {
		in.Notice.At = time.Now().UTC().Format(time.RFC3339)
	}
	known, full := false, false
	err = a.desk.Write(func(b *authority.Book) {
		reg := &registrar{book: b, supplier: in.Supplier}
		if _, known = b.Find(in.Supplier, in.Number); !known {
			return
		}
		list := reg.notices(in.Number)
		if slices.ContainsFunc(list, func(n xxwire.Notice) bool { return n.Key == in.Notice.Key }) {
			return
		}
		if full = len(list) >= noticesMax; !full {
			reg.keepNotices(in.Number, append(list, in.Notice))
			reg.mailNotice(in)
		}
	})
	switch {
	case err != nil:
		refusal{http.StatusInternalServerError, xxwire.CodeInternalError, "the book cannot be written"}.write(w)
	case !known:
		refusal{http.StatusNotFound, xxwire.CodeReference, "no such document is registered"}.write(w)
	case full:
		refusal{http.StatusConflict, xxwire.CodeCall, "enough was said about the document"}.write(w)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// mailNotice puts a notice of a document into the mailbox where its decision went.
func (reg *registrar) mailNotice(in xxwire.Said) {
	key, byMail := reg.book.Get("mailed/" + reg.supplier + "\x00" + in.Number)
	if !byMail {
		return
	}
	held, _ := reg.book.Find(reg.supplier, in.Number)
	said := registered(held)
	said.News = []xxwire.Notice{in.Notice}
	reg.drop(xxwire.Callback{ID: reg.supplier + "/" + in.Number + "/notice/" + in.Notice.Key, Key: key, Receipt: said})
}

// notices are what was said about a document, oldest first. Keys of the book: "notices/".
func (reg *registrar) notices(number string) (list []xxwire.Notice) {
	reg.book.Load("notices/"+reg.supplier+"\x00"+number, &list)
	return list
}

func (reg *registrar) keepNotices(number string, list []xxwire.Notice) {
	reg.book.Keep("notices/"+reg.supplier+"\x00"+number, list)
}
