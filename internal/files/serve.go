package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"tributary/internal/alert"
	"tributary/internal/db"
	"tributary/internal/fault"
	"tributary/internal/ids"
)

// Request asks for a document.
type Request struct {
	ResourceID string
	Format     string     // the last part of the path: pdf, xml or json
	ClientID   string     // the caller's scope when an API key has proved it; else empty
	Query      url.Values // of the address; read only without ClientID
}

// Content is a document to be served: an io.ReadCloser, checked before the first byte is read.
type Content struct {
	Size     int64
	Type     string // media type
	Filename string
	SHA256   string

	body *bytes.Reader
}

// Read reads the document.
func (c *Content) Read(p []byte) (int, error) { return c.body.Read(p) }

// Close releases nothing so far; callers close what they open.
func (c *Content) Close() error { return nil }

// Open returns a document to the owner's API key, or to a signed address that
// has not expired. It answers NotFound to a key that is not the owner's just as
// for a document that does not exist, Expired to an address of ours whose time
// is over, and Forbidden to any other address.
//
// Failure policy: nothing is served whose SHA-256 is not the one recorded when
// the operation settled. Such a document is an internal error and raises the
// alert document_damaged; its bytes stay where they are, for a person to look at.
func (s *Store) Open(ctx context.Context, req Request) (*Content, error) {
	var a Attachment
	var data []byte
	err := s.db.Read(ctx, func(r db.Reader) (err error) {
		if a, err = s.authorize(r, req); err != nil || a.Place != InRecord {
			return err
		}
		if s.cfg.Record == nil {
			return fmt.Errorf("read document %s: nobody reads records", a.ResourceID)
		}
		data, err = s.cfg.Record(r, a)
		return err
	})
	if err != nil {
		return nil, err
	}
	if a.Place == InStore {
		data, err = s.read(ctx, a)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, s.lost(ctx, req, a, "its bytes are missing")
		}
		if err != nil {
			return nil, unavailable(fmt.Errorf("read document %s: %w", a.ResourceID, err))
		}
	}
	if sum := sha256.Sum256(data); int64(len(data)) != a.Size || hex.EncodeToString(sum[:]) != a.SHA256 {
		return nil, s.lost(ctx, req, a, "its bytes are not those that were stored")
	}
	name := map[string]string{"VISUAL": "document", "REPORT": "report", "RECEIPT": "receipt", "CLIENT": "attachment", Original: "original"}[a.Kind]
	c := &Content{Size: a.Size, Type: mediaType(a.Type), Filename: name + "-" + a.ResourceID + "." + strings.ToLower(a.Type),
		SHA256: a.SHA256, body: bytes.NewReader(data)}
	if a.Signed {
		c.Type, c.Filename = "application/pkcs7-mime", c.Filename+".p7m"
	}
	return c, nil
}

// authorize finds the attachment that may be served.
func (s *Store) authorize(r db.Reader, req Request) (Attachment, error) {
	byKey := req.ClientID != ""
	sig, signed := parseSignature(req.Query)
	if !ids.Valid(req.ResourceID) || !byKey && !signed {
		return Attachment{}, refusal(byKey)
	}
	a, found, err := resource(r, req.ResourceID)
	if err != nil {
		return Attachment{}, err
	}
	rightForm := req.Format != "" && req.Format == strings.ToLower(a.Type)
	if byKey {
		if !found || a.ClientID != req.ClientID || !rightForm {
			return Attachment{}, refusal(byKey)
		}
		return a, nil
	}
	// Judged even when nothing was found, so that both take the same time.
	genuine := s.genuine(sig, a, req.Format)
	if !found || !rightForm || !genuine {
		return Attachment{}, refusal(byKey)
	}
	if sig.expired(s.now()) {
		return Attachment{}, fault.New(fault.Expired, "the address has expired; fetch the transaction again for a fresh one").
			With(fault.Fault{Code: fault.CodeExpired, Type: fault.General, Message: "the address has expired"})
	}
	return a, nil
}

func refusal(byKey bool) error {
	if byKey {
		return fault.New(fault.NotFound, "there is no such document").
			With(fault.Fault{Code: fault.CodeNotFound, Type: fault.General, Message: "there is no such document"})
	}
	return fault.New(fault.Forbidden, "the address is not valid; use an API key or an address from a transaction's result").
		With(fault.Fault{Code: fault.CodeForbidden, Type: fault.Authentication,
			Message: "the signature of the address is missing or not valid"})
}

// read fetches what is in the store.
func (s *Store) read(ctx context.Context, a Attachment) ([]byte, error) {
	if a.spot.archive != "" {
		return s.bucket.part(ctx, s.place(a), a.spot.at, a.Size)
	}
	return s.bucket.get(ctx, s.place(a), a.Size)
}

// place is the key of the file that holds an attachment.
func (s *Store) place(a Attachment) string {
	if a.spot.archive != "" {
		return s.archives(a.shelf) + a.spot.archive
	}
	return s.key(a.shelf, a.SHA256)
}

// lost judges a document whose bytes are not in the store, or not as they were:
// its retention may have ended while it was being opened.
func (s *Store) lost(ctx context.Context, req Request, a Attachment, how string) error {
	var still bool
	err := s.db.Read(ctx, func(r db.Reader) (err error) {
		_, still, err = resource(r, a.ResourceID)
		return err
	})
	if err != nil {
		return err
	}
	if !still {
		return refusal(req.ClientID != "")
	}
	if a.Place == InStore {
		how += " (SHA-256 " + a.SHA256 + " in " + s.place(a) + ")"
	}
	return s.damaged(ctx, a, how)
}

func (s *Store) damaged(ctx context.Context, a Attachment, how string) error {
	message := fmt.Sprintf("document %s of operation %s cannot be served: %s", a.ResourceID, a.OperationID, how)
	if s.cfg.Alerts == nil {
		s.log.Error(message, "alert", string(alert.DocumentDamaged), "subject", a.ResourceID)
		return errors.New(message)
	}
	return errors.Join(errors.New(message), s.cfg.Alerts.Raise(ctx, alert.DocumentDamaged, a.ResourceID, message))
}

func mediaType(typ string) string {
	switch typ {
	case "PDF":
		return "application/pdf"
	case "XML":
		return "application/xml"
	case "PNG":
		return "image/png"
	case "JPEG":
		return "image/jpeg"
	case "CSV":
		return "text/csv"
	case "ZIP":
		return "application/zip"
	default:
		return "application/json"
	}
}

// Headers are those of every document's answer: nobody caches it, no browser
// shows it inside our origin, guesses its type or tells others its address.
func Headers(c *Content) http.Header {
	return http.Header{
		"Content-Type":            {c.Type},
		"Content-Length":          {strconv.FormatInt(c.Size, 10)},
		"Content-Disposition":     {`attachment; filename="` + c.Filename + `"`},
		"Cache-Control":           {"private, no-store"},
		"X-Content-Type-Options":  {"nosniff"},
		"Referrer-Policy":         {"no-referrer"},
		"Content-Security-Policy": {"sandbox"},
	}
}
