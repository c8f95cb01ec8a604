package files

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"tributary/internal/fault"
)

// s3 is a bucket of an S3-compatible store, spoken to by minio-go.
//
// Failure policy: a call that nobody answered, or that the store could not serve
// (408, 429, 5xx), is tried three times within two seconds; every call can be
// repeated. Where no region was named the store is asked for it first, once.
// What is then still wrong goes to the caller, who has a ladder of its own.
type s3 struct {
	client    minio.Core
	name      string
	transport *s3Transport
}

const (
	// amazon is where buckets are unless an address says otherwise; the client
	// finds the region's own host from it.
	amazon = "https://s3.amazonaws.com"

	s3TriesMax     = 3
	s3ListBytesMax = 4 << 20 // a page of listMax keys has a quarter of it
	s3RefusalMax   = 300     // bytes of what a store says of its refusal
)

// s3Transport is the way to the store. It cuts a list off that is longer than any
// can be: the client would read all of it.
type s3Transport struct{ http.RoundTripper }

func (t *s3Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.RoundTripper.RoundTrip(r)
	if err == nil && r.URL.Query().Has("list-type") {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, s3ListBytesMax), answer.Body}
	}
	return answer, err
}

// openS3 reads s3://BUCKET?region=…&endpoint=…&use_path_style=true. Credentials
// are looked for where Amazon's own tools do: in the environment, in their file,
// and at the machine, container or service account.
func openS3(u *url.URL) (*s3, error) {
	q := u.Query()
	take := func(names ...string) (value string) {
		for _, name := range names {
			if q.Has(name) {
				value = q.Get(name)
				q.Del(name)
			}
		}
		return value
	}
	region, address := take("region"), take("endpoint")
	pathStyle := take("use_path_style", "s3ForcePathStyle") == "true"
	insecure := take("disable_https", "disableSSL") == "true"
	// of the version before: bodies are always signed with their hash
	take("request_checksum_calculation", "response_checksum_validation", "awssdk")
	if left := slices.Sorted(maps.Keys(q)); len(left) > 0 {
		return nil, fault.New(fault.Invalid, "document store: an s3 address has no %q: want region, endpoint, use_path_style, disable_https", left[0])
	}
	if u.Host == "" || u.Path != "" && u.Path != "/" {
		return nil, fault.New(fault.Invalid, "document store: want s3://BUCKET?region=REGION")
	}
	if address == "" {
		address = amazon
	}
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	at, err := url.Parse(address)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" || strings.Trim(at.Path, "/") != "" {
		return nil, fault.New(fault.Invalid, "document store: endpoint %q is not an address like https://HOST", address)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = writersRemote
	s := &s3{name: u.Host, transport: &s3Transport{transport}}
	options := &minio.Options{Secure: at.Scheme == "https" && !insecure, Region: region, Transport: s.transport,
		MaxRetries: s3TriesMax,
		Creds: credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{},
			&credentials.FileAWSCredentials{}, &credentials.IAM{}})}
	if pathStyle {
		options.BucketLookup = minio.BucketLookupPath
	}
	client, err := minio.New(at.Host, options)
	if err != nil {
		return nil, fault.New(fault.Invalid, "document store: endpoint %q: %s", address, err)
	}
	client.SetS3EnableDualstack(false) // the hosts that firewalls know
	s.client.Client = client
	return s, nil
}

// put overwrites: the same bytes again do no harm, a put is atomic there, and
// not every compatible store knows conditions. The hash of the bytes is signed,
// so that the store refuses what was changed on the way; DisableContentSha256
// switches off the other way, a signature of every chunk. Buckets with object
// lock want a checksum besides, and MD5 is the one that every store knows.
func (s *s3) put(ctx context.Context, key string, f File) error {
	sum := md5.Sum(f.Bytes)
	_, err := s.client.PutObject(ctx, s.name, key, bytes.NewReader(f.Bytes), f.Size,
		base64.StdEncoding.EncodeToString(sum[:]), f.SHA256,
		minio.PutObjectOptions{ContentType: "application/octet-stream", DisableContentSha256: true})
	return s.say("write", key, err)
}

func (s *s3) get(ctx context.Context, key string, size int64) ([]byte, error) {
	return s.read(ctx, key, size, minio.GetObjectOptions{})
}

func (s *s3) part(ctx context.Context, key string, at, size int64) ([]byte, error) {
	var options minio.GetObjectOptions
	if err := options.SetRange(at, at+size-1); err != nil {
		return nil, s.say("read", key, err)
	}
	return s.read(ctx, key, size, options)
}

func (s *s3) read(ctx context.Context, key string, size int64, options minio.GetObjectOptions) ([]byte, error) {
	body, _, _, err := s.client.GetObject(ctx, s.name, key, options)
	if err != nil {
		return nil, s.say("read", key, err)
	}
	data, err := readUpTo(body, size)
	return data, s.say("read", key, errors.Join(err, body.Close()))
}

// erase stores the object anew: parts of one cannot be changed. Archives come here
// only with a folder that was copied into the store.
func (s *s3) erase(ctx context.Context, key string, size int64, parts []member) error {
	data, err := s.get(ctx, key, size)
	if err != nil {
		return err
	}
	return s.put(ctx, key, NewFile(without(data, parts)))
}

func (s *s3) remove(ctx context.Context, key string) error {
	return s.say("remove", key, s.client.RemoveObject(ctx, s.name, key, minio.RemoveObjectOptions{}))
}

func (s *s3) each(ctx context.Context, prefix string, do func([]string) error) error {
	var page []string
	for object := range s.client.ListObjectsIter(ctx, s.name,
		minio.ListObjectsOptions{Prefix: prefix, Recursive: true, MaxKeys: listMax}) {
		if object.Err != nil {
			return s.say("list", prefix, object.Err)
		}
		if page = append(page, object.Key); len(page) == listMax {
			if err := do(page); err != nil {
				return err
			}
			page = nil
		}
	}
	if err := ctx.Err(); err != nil { // of which the list says nothing
		return s.say("list", prefix, err)
	}
	return do(page)
}

func (s *s3) close() error {
	(&http.Client{Transport: s.transport.RoundTripper}).CloseIdleConnections()
	return nil
}

// say gives an error of the store its place, and what is not there its kind.
func (s *s3) say(verb, key string, err error) error {
	if err == nil {
		return nil
	}
	if refused := minio.ToErrorResponse(err); refused.StatusCode != 0 {
		err = fmt.Errorf("the store answered %d %s: %s", refused.StatusCode, refused.Code,
			fault.Clip(refused.Message, s3RefusalMax))
		if refused.Code == minio.NoSuchKey {
			err = fmt.Errorf("%w: %w", fs.ErrNotExist, err)
		}
	}
	return fmt.Errorf("%s %s: %w", verb, key, err)
}
