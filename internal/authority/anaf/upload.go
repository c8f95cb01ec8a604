package anaf

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"tributary/internal/authority"
	"tributary/internal/xmltree"
)

// States of what was uploaded.
const (
	working = "in prelucrare"
	good    = "ok"
	bad     = "nok"
)

// arrival is one document of an upload.
type arrival struct {
	cif    string // of the call
	seller string // digits, as the document has them
	buyer  string // likewise; "": it names none
	number string
	about  string // of a buyer's message: the index of the invoice
	hash   string
	data   []byte
	flaws  []string
}

// entry is what the book keeps of an upload, under its index.
type entry struct {
	CIF    string    `json:"cif"`
	Number string    `json:"number"`
	Buyer  string    `json:"buyer,omitempty"`
	Hash   string    `json:"hash"`
	State  string    `json:"state"`
	At     time.Time `json:"at"`
	Errors []string  `json:"errors,omitempty"`
	Asked  int       `json:"asked,omitempty"` // in work: how often somebody has asked
	Due    time.Time `json:"due,omitzero"`
}

// upload takes a document under a new index; only the call is judged here.
func (a *double) upload(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	cif, standard := query.Get("cif"), query.Get("standard")
	if !slices.Contains([]string{"UBL", "CN", standardMessage}, standard) {
		a.badRequest(w, "Valorile acceptate pentru parametrul standard sunt UBL, CN, CII sau RASP")
		return
	}
	if cif == "" || strings.Trim(cif, "0123456789") != "" {
		a.badRequest(w, "Parametrul cif trebuie sa contina numai cifre")
		return
	}
	for _, name := range []string{"extern", "autofactura", "executare"} {
		if v, given := query[name]; given && (len(v) != 1 || v[0] != "DA") {
			a.badRequest(w, "Valoarea acceptata pentru parametrul "+name+" este DA")
			return
		}
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, uploadBytesMax))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		a.refuse(w, "Marime fisier transmis mai mare de 10 MB.")
		return
	}
	if err != nil {
		return // the caller left
	}
	if cif == "999999999" {
		a.refuse(w, "Nu aveti drept in SPV pentru CIF="+cif)
		return
	}
	x := read(data, cif, standard)
	if standard != standardMessage {
		x.judgeCall(query.Get("extern") == "DA", query.Get("autofactura") == "DA", strings.HasSuffix(r.URL.Path, "b2c"))
	}
	switch {
	case a.endings.Obey(x.number, "-LIMIT", 1):
		a.refuse(w, "S-au facut deja 1000 apeluri de upload in ultimul minut")
		return
	case a.endings.Obey(x.number, "-FIREWALL", 1):
		firewall(w)
		return
	}
	turn := a.desk.Turn(authority.Arrival{Supplier: x.seller, Number: x.number})
	if !turn.Begin(w, nil) {
		return
	}
	var index string
	if err := a.desk.Write(func(b *authority.Book) { index = a.take(b, &x, turn.Steps[0]) }); err != nil {
		http.Error(w, "Internal Server Error", http.StatusInternalServerError)
		return
	}
	if !turn.End(w, r) {
		return
	}
	writeXML(w, func(out *xmltree.Writer) {
		out.Start("header", "xmlns", spaceUpload, "dateResponse", a.now().Format("200601021504"), "ExecutionStatus", "0",
			"index_incarcare", index)
		out.End()
	})
}

// take keeps an upload, and decides it unless the script or its number says later.
func (a *double) take(b *authority.Book, x *arrival, step authority.Step) string {
	if step.Outcome == authority.Duplicate && x.about == "" { // messages may be as many as somebody sends
		a.plant(b, x, step)
	}
	e := entry{CIF: x.seller, Number: x.number, Buyer: x.buyer, Hash: x.hash, State: working, At: a.now().UTC()}
	index := a.keep(b, x, e)
	if step.Outcome == authority.Suspend {
		e.Due = e.At.Add(step.Delay)
		b.Keep("entry/"+index, e)
		b.AddWord("pending/"+x.seller, index)
		return index
	}
	a.decide(b, index, x, step)
	return index
}

// keep gives an upload its index.
func (a *double) keep(b *authority.Book, x *arrival, e entry) string {
	n, _ := strconv.Atoi(b.Text("last"))
	index := strconv.Itoa(max(n, 5_000_000) + 1)
	b.Put("last", index)
	b.Put("data/"+index, base64.StdEncoding.EncodeToString(x.data))
	b.Keep("entry/"+index, e)
	return index
}

// plant registers what a script says is there already: ours from a call before,
// or another's under the number.
func (a *double) plant(b *authority.Book, x *arrival, step authority.Step) {
	other := *x
	if step.Of != authority.OfOurs {
		other.data = []byte(strings.Replace(string(x.data), "<cbc:IssueDate>", "<cbc:Note>another</cbc:Note><cbc:IssueDate>", 1))
		sum := sha256.Sum256(other.data)
		other.hash = hex.EncodeToString(sum[:])
	}
	index := a.keep(b, &other, entry{CIF: x.seller, Number: x.number, Buyer: x.buyer, Hash: other.hash, State: working, At: a.now().UTC()})
	a.decide(b, index, &other, authority.Step{Outcome: authority.Accept})
}

// decide ends an upload: what is there already is refused with the index before.
func (a *double) decide(b *authority.Book, index string, x *arrival, step authority.Step) {
	var e entry
	b.Load("entry/"+index, &e)
	to := x.addressed(b)
	e.Due, e.Errors = time.Time{}, x.flaws
	if first, taken := b.FindKey(x.seller + "\x00" + x.number); taken && x.about == "" {
		e.Errors = append(e.Errors, fmt.Sprintf("Factura a mai fost transmisa anterior cu index=%s si data incarcare=%s",
			first.AuthorityID, first.At.Format(time.DateOnly)))
	}
	if step.Outcome == authority.Reject {
		e.Errors = append(e.Errors, "E: validari globale  eroare regula: BR-RO-020, respinsa de scenariul de test")
	}
	e.State = bad
	switch {
	case len(e.Errors) > 0:
	case x.about != "":
		e.State = good
		b.Register(authority.Registration{Supplier: x.seller, Number: x.number, SHA256: x.hash, AuthorityID: index, At: e.At})
		b.AddWord("answers/"+x.seller, index)
		b.AddWord("answers/"+to, index)
	default:
		e.State = good
		b.Register(authority.Registration{Supplier: x.seller, Number: x.number, SHA256: x.hash, AuthorityID: index, At: e.At,
			Key: x.seller + "\x00" + x.number})
		b.AddWord("sent/"+x.seller, index)
		if x.buyer != "" {
			b.AddWord("received/"+x.buyer, index)
		}
	}
	b.Keep("entry/"+index, e)
}

// settle decides what is due of a company, once more than it was asked for.
func (a *double) settle(b *authority.Book, cif string) {
	b.KeepWords("pending/"+cif, func(index string) bool { return !a.mature(b, index) })
}

// mature decides an upload in work whose time has come; false: not yet.
func (a *double) mature(b *authority.Book, index string) bool {
	var e entry
	if !b.Load("entry/"+index, &e) || e.State != working {
		return true
	}
	e.Asked++
	wanted := 1
	if strings.HasSuffix(e.Number, "-WORKING") {
		wanted = 2
	}
	if e.Asked <= wanted || a.now().Before(e.Due) {
		b.Keep("entry/"+index, e)
		return false
	}
	step := a.desk.Decide()
	if step.Outcome == authority.Suspend {
		e.Due = a.now().Add(step.Delay)
		b.Keep("entry/"+index, e)
		return false
	}
	data, _ := base64.StdEncoding.DecodeString(b.Text("data/" + index))
	x := read(data, e.CIF, "")
	a.decide(b, index, &x, step)
	return true
}
