package files_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/internal/db/dbtest"
	"tributary/internal/fault"
	"tributary/internal/files"
)

// bucketServer speaks as much S3 as the store needs, in pages of two keys.
type bucketServer struct {
	mu     sync.Mutex
	blobs  map[string][]byte
	puts   int
	broken bool
}

func (b *bucketServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken {
		http.Error(w, "<Error><Code>AccessDenied</Code></Error>", http.StatusForbidden)
		return
	}
	key := strings.TrimPrefix(r.URL.Path, "/docs/")
	switch r.Method {
	case http.MethodPut:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		b.blobs[key] = body
		b.puts++
	case http.MethodDelete:
		delete(b.blobs, key)
		w.WriteHeader(http.StatusNoContent)
	case http.MethodGet, http.MethodHead:
		if r.URL.Query().Has("list-type") {
			b.list(w, r.URL.Query())
			return
		}
		body, ok := b.blobs[key]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, "<Error><Code>NoSuchKey</Code></Error>") // a test's answer
			return
		}
		http.ServeContent(w, r, "", time.Now(), bytes.NewReader(body)) // parts too
	}
}

func (b *bucketServer) list(w io.Writer, q url.Values) {
	type entry struct {
		Key, LastModified, ETag string
		Size                    int
	}
	var out struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
		Contents              []entry
	}
	var keys []string
	for key := range b.blobs {
		if strings.HasPrefix(key, q.Get("prefix")) && key > q.Get("continuation-token") {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	if len(keys) > 2 {
		keys, out.IsTruncated, out.NextContinuationToken = keys[:2], true, keys[1]
	}
	for _, key := range keys {
		out.Contents = append(out.Contents, entry{key, "2026-03-01T10:00:00Z", `"x"`, len(b.blobs[key])})
	}
	_ = xml.NewEncoder(w).Encode(out) // a test's answer
}

// openBucket starts a server and answers the address of its bucket.
func openBucket(t *testing.T) (remote *bucketServer, address string) {
	remote = &bucketServer{blobs: map[string][]byte{}}
	server := httptest.NewServer(remote)
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return remote, "s3://docs?region=eu-central-1&use_path_style=true&request_checksum_calculation=when_required&response_checksum_validation=when_required&endpoint=" + url.QueryEscape(server.URL)
}

func TestS3StoresServesAndSweeps(t *testing.T) {
	remote, address := openBucket(t)
	s := openShop(t, dbtest.SQLite(t), func(c *files.Config) { c.URL = address })
	ctx := context.Background()
	var content []files.File
	for i := range 7 {
		content = append(content, files.NewFile(text("content %d", i)))
	}
	must(t, s.Keep(ctx, content...))
	must(t, s.Keep(ctx, content[0]))
	must(t, s.attach(visual("a", "0", content[0]), visual("a", "1", content[1])))
	if remote.puts != 8 {
		t.Errorf("%d puts, want 7 and the store's mark", remote.puts)
	}
	for id, want := range map[string]string{"0": "content 0", "1": "content 1"} {
		if got, err := s.fetch(s.of("a", id)[0]); err != nil || string(got) != want {
			t.Errorf("served %q, %v", got, err)
		}
	}
	s.clock.pass(5 * time.Hour)
	if n := s.sweep(0); n != 5 || len(remote.blobs) != 3 {
		t.Errorf("swept %d, left %d", n, len(remote.blobs))
	}
	clear(remote.blobs)
	_, err := s.fetch(s.of("a", "0")[0])
	wantKind(t, err, fault.Internal)
	remote.broken = true
	wantKind(t, s.Keep(ctx, content[0]), fault.Unavailable)
	_, err = s.fetch(s.of("a", "0")[0])
	wantKind(t, err, fault.Unavailable)
}
