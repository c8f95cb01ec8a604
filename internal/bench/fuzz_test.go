package bench

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"testing"

	"tributary/internal/mutate"
)

// What the load generator reads of an answer is what the standard library reads.
func FuzzAnswer(f *testing.F) {
	for _, text := range []string{
		"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
		"HTTP/1.1 200", "HTTP/1.1 abc\r\n\r\n", "\n\n",
	} {
		f.Add([]byte(text))
	}
	mutate.Corpus(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		status, body, err := readAnswer(bufio.NewReader(bytes.NewReader(text)))
		if err != nil {
			return
		}
		if len(body) > len(text) {
			t.Fatalf("%d bytes of %d", len(body), len(text))
		}
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(text)), nil)
		if err != nil || resp.ContentLength < 0 || resp.TransferEncoding != nil || status < 200 ||
			status == http.StatusNoContent || status == http.StatusNotModified {
			return // no answer with a length, or none that may have a body
		}
		want, err := io.ReadAll(resp.Body)
		if err == nil && (status != resp.StatusCode || !bytes.Equal(body, want)) {
			t.Fatalf("%q is read as %d %q, not as %d %q", text, status, body, resp.StatusCode, want)
		}
	})
}
